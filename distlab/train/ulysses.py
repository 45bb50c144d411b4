"""Ulysses: context parallelism in which an all-to-all turns tokens into heads.

    rank              0        1        2        3       each has a shard of the tokens,
    before         tokens 0  tokens 1 tokens 2 tokens 3  of all heads
    all-to-all      heads 0  heads 1  heads 2  heads 3   of all tokens: attend as usual
    all-to-all     tokens 0  tokens 1 tokens 2 tokens 3  the result, of all heads

Each rank attends with whole heads, by any kernel and any mask, and a causal mask costs
every rank the same. Ring attention sends keys and values n - 1 times; here a tensor is
sent once, less the part that stays. In exchange the heads limit the number of ranks.

Backward of one all-to-all is the other.

Source: Jacobs et al., "DeepSpeed Ulysses: system optimizations for enabling training of
extreme long sequence transformer models" (2023).
"""

import torch
from torch.nn import functional

from distlab.errors import InvalidArgument
from distlab.train.expert_parallel import exchange_rows

__all__ = ["heads_to_tokens", "tokens_to_heads", "ulysses_attention"]


def tokens_to_heads(comm, x: torch.Tensor) -> torch.Tensor:
    """Return all tokens of this rank's heads, from this rank's tokens of all heads.

    x: [batch, heads, length / n, head_dim]; rank r's tokens and heads are the r-th.
    Raises: InvalidArgument for heads that n does not divide.
    Cost: one all-to-all; a rank sends (n - 1) / n of x.
    """
    return _exchanged(comm, x, "heads", cut=1, joined=2)


def heads_to_tokens(comm, x: torch.Tensor) -> torch.Tensor:
    """Return this rank's tokens of all heads: the reverse of `tokens_to_heads`.

    x: [batch, heads / n, length, head_dim].
    Raises: InvalidArgument for a length that n does not divide.
    """
    return _exchanged(comm, x, "tokens", cut=2, joined=1)


def _exchanged(comm, x, what, *, cut, joined):
    n = comm.world_size
    if x.ndim != 4 or not x.shape[cut] or x.shape[cut] % n:
        raise InvalidArgument(
            f"rank {comm.rank}: Ulysses gives {n} ranks equally many {what}, so {n} "
            f"divides dim {cut} of [batch, heads, length, head_dim]: {[*x.shape]}."
        )
    pieces = exchange_rows(comm, torch.stack(x.chunk(n, cut)), [1] * n, [1] * n)
    return torch.cat([*pieces], joined)


def ulysses_attention(comm, q, k, v, *, causal: bool = True) -> torch.Tensor:
    """Return attention of this rank's tokens to all tokens, for all heads.

    q, k, v: this rank's contiguous shard, [batch, heads, length / n, head_dim]; k and v
        may have fewer heads (grouped queries), which n divides, too.
    Cost: four all-to-alls forward and four backward, of q, k, v and the result.
    """
    q, k, v = (tokens_to_heads(comm, each) for each in (q, k, v))
    grouped = {"enable_gqa": True} if q.shape[1] != k.shape[1] else {}
    seen = functional.scaled_dot_product_attention(q, k, v, is_causal=causal, **grouped)
    return heads_to_tokens(comm, seen)
