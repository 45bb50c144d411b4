"""A small task for policies: the right token for each pair of symbols.

    prompt    (2, 0)  (1, 3)  (0, 0)  (2, 1)     pairs of 4 symbols
    answer       5       1       7       3       a token of 8 for each
    reward    0.75                               the share of right ones

The table of right tokens is hidden: a policy learns from rewards only. It is a network
with one hidden layer, and its weights are one flat tensor. Many tasks can be trained
at once, each a slice of the same tensors.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch

__all__ = ["PairTask", "Rollouts"]

SYMBOLS, TOKENS, HIDDEN, PAIRS = 4, 8, 32, 4


class Rollouts(NamedTuple):
    """Samples of a policy, n of them; of several tasks, with a dimension in front.

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
            self.prompts.flatten(-2),
            self.tokens,
            self.log_probs,
            self.rewards[..., None],
        )
        return torch.cat([part.float() for part in parts], -1)

    @classmethod
    def of_rows(cls, rows: torch.Tensor) -> "Rollouts":
        """Return the samples of rows that `rows` made."""
        prompts, tokens, log_probs, rewards = rows.split(
            [2 * PAIRS, PAIRS, PAIRS, 1], -1
        )
        prompts = prompts.long().unflatten(-1, (PAIRS, 2))
        return cls(prompts, tokens.long(), log_probs, rewards[..., 0])


class PairTask:
    """A hidden table, and policies that guess in it.

    elements: of a row of `Rollouts`. seed: another one, another table; of a sequence
    of seeds a task each, and every tensor has that dimension in front.
    """

    elements = 4 * PAIRS + 1

    def __init__(self, seed: int | Sequence[int] = 0):
        if isinstance(seed, int):
            self.table, self.start = _drawn(seed)
        else:
            self.table, self.start = map(
                torch.stack, zip(*map(_drawn, seed), strict=True)
            )

    def log_probs(self, weights: torch.Tensor, prompts: torch.Tensor) -> torch.Tensor:
        """Return the log-probability of each token at each pair: [n, pairs, tokens]."""
        cells = _cell(prompts).flatten(-2)[..., None]
        chosen = torch.take_along_dim(_of_all_pairs(weights), cells, -2)
        return chosen.unflatten(-2, prompts.shape[-3:-1])

    def generate(
        self, weights: torch.Tensor, count: int, draw: torch.Generator
    ) -> Rollouts:
        """Draw prompts, answer them with a policy, and reward the answers."""
        size = (*weights.shape[:-1], count, PAIRS, 2)
        prompts = torch.randint(SYMBOLS, size, generator=draw)
        with torch.no_grad():
            chances = self.log_probs(weights, prompts)
        tokens = torch.multinomial(chances.exp().view(-1, TOKENS), 1, generator=draw)
        tokens = tokens.view(size[:-1])
        log_probs = chances.gather(-1, tokens[..., None])[..., 0]
        right = self.table.flatten(-2).gather(-1, _cell(prompts).flatten(-2))
        rewards = (tokens.flatten(-2) == right).view_as(tokens).float().mean(-1)
        return Rollouts(prompts, tokens, log_probs, rewards)

    def expected_return(self, weights: torch.Tensor) -> torch.Tensor:
        """Return each policy's mean reward over all pairs, without sampling: [...]."""
        with torch.no_grad():
            chances = _of_all_pairs(weights).exp()
        return chances.gather(-1, self.table.flatten(-2)[..., None]).mean((-2, -1))


def _cell(prompts):
    """Return the index of each pair's cell in a flat table."""
    return SYMBOLS * prompts[..., 0] + prompts[..., 1]


def _of_all_pairs(weights):
    """Return the log-probabilities of the tokens at each cell of the table."""
    first, second = weights.split([2 * SYMBOLS * HIDDEN, HIDDEN * TOKENS], -1)
    one, other = first.unflatten(-1, (2, SYMBOLS, HIDDEN)).unbind(-3)
    hidden = torch.tanh(one[..., :, None, :] + other[..., None, :, :])
    logits = hidden.flatten(-3, -2) @ second.unflatten(-1, (HIDDEN, TOKENS))
    return torch.log_softmax(logits, -1)


def _drawn(seed):
    """Return the table and the weights at the start of one task."""
    draw = torch.Generator().manual_seed(seed)
    table = torch.randint(TOKENS, (SYMBOLS, SYMBOLS), generator=draw)
    first = torch.randn(2 * SYMBOLS * HIDDEN, generator=draw) / 3
    second = torch.randn(HIDDEN * TOKENS, generator=draw) / 10
    return table, torch.cat([first, second])
