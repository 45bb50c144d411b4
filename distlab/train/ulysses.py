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
    n = comm.world_size
    if x.ndim != 4 or not x.shape[1] or x.shape[1] % n:
        raise InvalidArgument(
            f"rank {comm.rank}: Ulysses gives each of {n} ranks as many heads, so {n} "
            f"divides dim 1 of [batch, heads, length, head_dim]: {[*x.shape]}."
        )
    by_owner = x.unflatten(1, (n, -1)).movedim(1, 0)
    by_token = exchange_rows(comm, by_owner, [1] * n, [1] * n)
    return by_token.movedim(0, 2).flatten(2, 3)


def heads_to_tokens(comm, x: torch.Tensor) -> torch.Tensor:
    """Return this rank's tokens of all heads: the reverse of `tokens_to_heads`.

    x: [batch, heads / n, length, head_dim].
    Raises: InvalidArgument for a length that n does not divide.
    """
    n = comm.world_size
    if x.ndim != 4 or not x.shape[2] or x.shape[2] % n:
        raise InvalidArgument(
            f"rank {comm.rank}: each of {n} ranks gets as many tokens, so {n} divides "
            f"dim 2 of [batch, heads, length, head_dim]: {[*x.shape]}."
        )
    by_owner = x.unflatten(2, (n, -1)).movedim(2, 0)
    by_head = exchange_rows(comm, by_owner, [1] * n, [1] * n)
    return by_head.movedim(0, 1).flatten(1, 2)


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
