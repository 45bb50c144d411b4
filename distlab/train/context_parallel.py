"""Context parallelism: ring attention over a sequence that is sharded over the ranks.

    rank              0      1      2      3       each has two chunks of the sequence,
    queries          0 7    1 6    2 5    3 4      r and 2n-1-r; they stay
    keys, step 1     0 7    1 6    2 5    3 4      its own
    keys, step 2     3 4    0 7    1 6    2 5      move on while the ranks compute

The online softmax never needs all scores of a query at once. It reads tile after tile
of scores x, 128 x 128, and keeps a running maximum m, sum s and output o per query:

    m' = max(m, x)    s' = s exp(m - m') + sum exp(x - m')
                      o' = o exp(m - m') + exp(x - m') V          at the end: o / s

Backward computes the scores again, and their softmax from the log-sum-exp m + log s,
which forward keeps. The gradients of keys and values move along with these.

If each rank had one contiguous part of a causal sequence, the last would do 2n-1 times
the work of the first. With an early and a late chunk, each step is the same for all.

Source: Liu, Zaharia and Abbeel, "Ring attention with blockwise transformers" (2023);
Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018); Dao et al.,
"FlashAttention" (2022); two chunks: "The Llama 3 herd of models" (2024), section 3.3.2.
"""

import itertools
from collections.abc import Callable

import torch
from torch.autograd.function import once_differentiable

from distlab.collectives import ring_all_gather
from distlab.errors import InvalidArgument

__all__ = ["causal_work", "contiguous", "cut_sequence", "join_sequence"]
__all__ += ["ring_attention", "zigzag"]

_TILE = 128  # queries, and keys, of one tile of scores


def zigzag(world_size: int, rank: int) -> tuple[int, int]:
    """Return the indices of a rank's two of 2n chunks: an early and a late one."""
    return rank, 2 * world_size - 1 - rank


def contiguous(world_size: int, rank: int) -> tuple[int, int]:
    """Return the indices of a rank's two chunks if it has a contiguous part."""
    return 2 * rank, 2 * rank + 1


def cut_sequence(comm, whole, *, dim=-2, layout: Callable = zigzag) -> torch.Tensor:
    """Return this rank's two chunks of a sequence, concatenated.

    layout: returns the indices of the two chunks; a function of world size and rank.
    Raises: InvalidArgument for a length that does not divide.
    """
    count, length = 2 * comm.world_size, whole.shape[dim]
    if not length or length % count:
        raise InvalidArgument(
            f"{length} tokens do not cut into {count} equal chunks, two for each of "
            f"{count // 2} ranks. Pad them to {max(1, -(-length // count)) * count}."
        )
    chunks = whole.chunk(count, dim)
    return torch.cat([chunks[c] for c in layout(comm.world_size, comm.rank)], dim)


def join_sequence(comm, shard, *, dim=-2, layout: Callable = zigzag) -> torch.Tensor:
    """Return the whole sequence from the shards, by an all-gather; no gradient."""
    ordered = {}
    for rank, each in enumerate(ring_all_gather(comm, shard.detach().contiguous())):
        ordered |= zip(layout(comm.world_size, rank), each.chunk(2, dim), strict=True)
    return torch.cat([ordered[c] for c in sorted(ordered)], dim)


def causal_work(world_size: int, layout: Callable = zigzag) -> list[list[float]]:
    """Return [rank][step] -> number of chunk x chunk blocks that are not masked."""
    n, own = world_size, [layout(world_size, rank) for rank in range(world_size)]

    def work(mine, theirs):
        return sum((a > b) + (a == b) / 2 for a in mine for b in theirs)

    return [[work(own[r], own[r - step]) for step in range(n)] for r in range(n)]


def ring_attention(comm, q, k, v, *, causal: bool = True, layout: Callable = zigzag):
    """Return attention of this rank's queries to the keys of all ranks.

    Equals torch's scaled_dot_product_attention on the whole sequence.

    q, k, v: this rank's shard, [batch, heads, length / n, head_dim], as is the result.
        If causal, it was cut by `cut_sequence`, with the same layout. k and v may have
        fewer heads, which divide those of q (grouped queries): only these travel.
    Raises: InvalidArgument for shapes that are no shards of one sequence.
    Cost: n-1 messages in forward and 2n-1 in backward, each of a shard's K and V.
    """
    fits = q.ndim == 4 and k.shape == v.shape and k.ndim == 4
    fits = fits and k.shape[1] and not q.shape[1] % k.shape[1]
    alike = fits and (q.shape[0], *q.shape[2:]) == (k.shape[0], *k.shape[2:])
    if not alike or (causal and q.shape[2] % 2):
        raise InvalidArgument(
            f"rank {comm.rank}: q, k and v have one shape, [batch, heads, length, head_"
            f"dim], except for k's and v's heads, which divide q's; causal ones an "
            f"even length: {[*q.shape], [*k.shape], [*v.shape]}."
        )
    return _RingAttention.apply(comm, q, k, v, layout if causal else None)


class _RingAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, comm, q, k, v, layout):
        wide = torch.promote_types(q.dtype, torch.float32)
        output = torch.zeros_like(q, dtype=wide)
        sums = output.new_zeros((*q.shape[:3], 1))
        highest = torch.full_like(sums, -torch.inf)

        def attend(kv, _, rows, columns, masked):
            keys, values = (_for_queries(q, each[:, :, columns], wide) for each in kv)
            x = _attention_logits(q[:, :, rows].to(wide), keys, masked)
            before = highest[:, :, rows]
            high = torch.maximum(before, x.amax(-1, keepdim=True))
            x.sub_(high).exp_()
            shrink = (before - high).exp_()
            sums[:, :, rows].mul_(shrink).add_(x.sum(-1, keepdim=True))
            output[:, :, rows].mul_(shrink).add_(x @ values)
            before.copy_(high)

        _around_the_ring(comm, (k, v), layout, attend)
        output = output.div_(sums).to(q.dtype)
        ctx.comm, ctx.layout = comm, layout
        ctx.save_for_backward(q, k, v, output, highest.add_(sums.log_()))
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx, d_output):
        q, k, v, output, log_sum_exp = ctx.saved_tensors
        wide = log_sum_exp.dtype
        mean = (d_output * output).sum(-1, keepdim=True, dtype=wide)
        d_q = torch.zeros_like(q, dtype=wide)
        d_kv = d_q.new_zeros((2, *k.shape))
        groups = k.shape[1], -1  # of query heads

        def attend(kv, d_kv, rows, columns, masked):
            keys, values = (_for_queries(q, each[:, :, columns], wide) for each in kv)
            queries, d_out = (each[:, :, rows].to(wide) for each in (q, d_output))
            p = _attention_logits(queries, keys, masked)
            p.sub_(log_sum_exp[:, :, rows]).exp_()
            d_kv[1][:, :, columns].add_((p.mT @ d_out).unflatten(1, groups).sum(2))
            d_x = (d_out @ values.mT).sub_(mean[:, :, rows]).mul_(p)
            d_x *= q.shape[-1] ** -0.5
            d_q[:, :, rows].add_(d_x @ keys)
            d_kv[0][:, :, columns].add_((d_x.mT @ queries).unflatten(1, groups).sum(2))

        kv = k.to(wide), v.to(wide)
        d_kv = _around_the_ring(ctx.comm, kv, ctx.layout, attend, d_kv)
        return None, d_q.to(q.dtype), *d_kv.to(k.dtype), None


def _for_queries(q, tile, wide):
    """Return keys or values for each head of q; a copy only if they are grouped."""
    group = q.shape[1] // tile.shape[1]
    return tile.to(wide)[:, :, None].expand(-1, -1, group, -1, -1).flatten(1, 2)


def _attention_logits(queries, keys, masked):
    """Return a tile of scores; on the diagonal, later keys have minus infinity."""
    x = (queries * queries.shape[-1] ** -0.5) @ keys.mT
    if masked:
        x.masked_fill_(torch.ones_like(x, dtype=torch.bool).triu_(1), -torch.inf)
    return x


def _around_the_ring(comm, kv, layout, attend: Callable, gradients=None):
    """Attend to one rank's keys after another, while the next ones are in flight.

    gradients: of keys and values, which move on with these; `attend` adds to them.
    """
    n, rank, length = comm.world_size, comm.rank, kv[0].shape[2]
    name = "ring attention" if gradients is None else "attention backward"
    kv = torch.stack(kv) if n > 1 else kv  # one message
    incoming = torch.empty_like(kv) if n > 1 else None

    def pass_on(comm, outgoing, incoming):  # returns nothing that a request would keep
        comm.sendrecv(outgoing, incoming, dst=(rank + 1) % n, src=(rank - 1) % n)

    for step in range(n):
        comm.mark(f"{name}, step {step + 1} of {n}")
        moving = comm.start(pass_on, kv, incoming) if step < n - 1 else None
        theirs = (rank - step) % n
        # Without a mask, all keys are as those of a chunk before.
        chunks = (layout(n, rank), layout(n, theirs)) if layout else ((0,), (-1,))
        with comm.work(f"keys of rank {theirs}"):
            tiles = itertools.product(*(_tiles(each, length) for each in chunks))
            for (a, rows), (b, columns) in tiles:
                if b <= a:  # else it is masked as a whole
                    attend(kv, gradients, rows, columns, a == b)
        if moving:
            moving.wait()
        if gradients is not None and n > 1:  # these keys are done with: free memory
            comm.mark(f"gradients of keys, step {step + 1} of {n}")
            pass_on(comm, gradients, kv)
            gradients, kv = kv, gradients
        kv, incoming = incoming, kv
    return gradients


def _tiles(chunks, length):
    """Return ((chunk, start in the chunk), slice of the shard) for each tile."""
    size = length // len(chunks)
    return [
        ((chunk, start), slice(i * size + start, i * size + min(start + _TILE, size)))
        for i, chunk in enumerate(chunks)
        for start in range(0, size, _TILE)
    ]
