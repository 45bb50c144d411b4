"""A small task for policies: the right token for each pair of symbols.

    prompt    (2, 0)  (1, 3)  (0, 0)  (2, 1)     pairs of 4 symbols
    answer       5       1       7       3       a token of 8 for each
    reward    0.75                               the share of right ones

The table of right tokens is hidden: a policy learns from rewards only. It is a network
with one hidden layer, and its weights are one flat tensor.
"""

from typing import NamedTuple

import torch

__all__ = ["PairTask", "Rollouts"]

SYMBOLS, TOKENS, HIDDEN, PAIRS = 4, 8, 32, 4


class Rollouts(NamedTuple):
    """Samples of a policy, n of them.

    prompts: [n, pairs, 2]. tokens: [n, pairs]. log_probs: [n, pairs], of these tokens
    when they were generated. rewards: [n], from 0 to 1.
    """

    prompts: torch.Tensor
    tokens: torch.Tensor
    log_probs: torch.Tensor
    rewards: torch.Tensor

    def rows(self) -> torch.Tensor:
        """Return a flat row for each sample, to be sent: [n, 4 pairs + 1]."""
        parts = (
            self.prompts.flatten(1),
            self.tokens,
            self.log_probs,
            self.rewards[:, None],
        )
        return torch.cat([part.float() for part in parts], 1)

    @classmethod
    def of_rows(cls, rows: torch.Tensor) -> "Rollouts":
        """Return the samples of rows that `rows` made."""
        prompts, tokens, log_probs, rewards = rows.split(
            [2 * PAIRS, PAIRS, PAIRS, 1], 1
        )
        prompts = prompts.long().view(-1, PAIRS, 2)
        return cls(prompts, tokens.long(), log_probs, rewards[:, 0])


class PairTask:
    """A hidden table, and policies that guess in it.

    elements: of a row of `Rollouts`. seed: another one, another table.
    """

    elements = 4 * PAIRS + 1

    def __init__(self, seed: int = 0):
        draw = torch.Generator().manual_seed(seed)
        self.table = torch.randint(TOKENS, (SYMBOLS, SYMBOLS), generator=draw)
        first = torch.randn(2 * SYMBOLS * HIDDEN, generator=draw) / 3
        self.start = torch.cat(
            [first, torch.randn(HIDDEN * TOKENS, generator=draw) / 10]
        )

    def log_probs(self, weights: torch.Tensor, prompts: torch.Tensor) -> torch.Tensor:
        """Return the log-probability of each token at each pair: [n, pairs, tokens]."""
        first, second = weights.split([2 * SYMBOLS * HIDDEN, HIDDEN * TOKENS])
        one, other = first.view(2, SYMBOLS, HIDDEN)
        hidden = torch.tanh(one[prompts[..., 0]] + other[prompts[..., 1]])
        return torch.log_softmax(hidden @ second.view(HIDDEN, TOKENS), -1)

    def generate(
        self, weights: torch.Tensor, count: int, draw: torch.Generator
    ) -> Rollouts:
        """Draw prompts, answer them with a policy, and reward the answers."""
        prompts = torch.randint(SYMBOLS, (count, PAIRS, 2), generator=draw)
        with torch.no_grad():
            chances = self.log_probs(weights, prompts)
        tokens = torch.multinomial(chances.exp().view(-1, TOKENS), 1, generator=draw)
        tokens = tokens.view(count, PAIRS)
        log_probs = chances.gather(-1, tokens[..., None])[..., 0]
        right = tokens == self.table[prompts[..., 0], prompts[..., 1]]
        return Rollouts(prompts, tokens, log_probs, right.float().mean(1))

    def expected_return(self, weights: torch.Tensor) -> float:
        """Return the mean reward of a policy over all pairs, without sampling."""
        every = torch.arange(SYMBOLS)
        pairs = torch.cartesian_prod(every, every)
        with torch.no_grad():
            chances = self.log_probs(weights, pairs).exp()
        return float(chances.gather(-1, self.table.view(-1, 1)).mean())
