"""Products overlapped with their all-gather, or reduce-scatter, around a ring.

    y = all-gather(x) W      rank 0 of 4, which has rows 0 of x and its columns of W
    step            1        2        3        4
    computes     x0 W     x3 W     x2 W     x1 W
    receives     x3       x2       x1                  while it computes

    y = reduce-scatter(x W)  rank 0 has its columns of x and its rows of W
    computes     x3 W     x2 W     x1 W     x0 W
    receives             sums 2   sums 1   sums 0      while it computes

A gathered product needs all rows only in the end: each shard is multiplied as soon as
it is there, and the next is in flight. A scattered product computes the part that
travels farthest first, and adds what has arrived to the next. Bytes are those of the
ring; n small products replace a large one. Exposed is what a step's message takes
longer than its product.

Backward of the one is the other, for x; W's gradient multiplies shards around a ring.

Source: Wang et al., "Overlap communication with dependent computation via decomposition
in large deep learning models" (ASPLOS 2023); PyTorch's async tensor parallelism.
"""

from collections.abc import Callable

import torch
from torch.autograd.function import once_differentiable

from distlab.errors import InvalidArgument

__all__ = ["gathered_linear", "gathered_product", "scattered_linear"]
__all__ += ["scattered_product"]


def gathered_product(comm, shard: torch.Tensor, product: Callable) -> list:
    """Return product(x, r) for each rank r and its shard x, in the order of ranks.

    shard: this rank's; all have one shape.
    Cost: n - 1 messages, those of a ring all-gather; each overlaps with a product.
    """
    n, rank, made = comm.world_size, comm.rank, {}
    shard = shard.contiguous()
    for step in range(n):
        arriving = torch.empty_like(shard)
        request = comm.start(_pass_on, shard, arriving) if step < n - 1 else None
        owner = (rank - step) % n
        made[owner] = product(shard, owner)
        if request:
            request.wait()
            shard = arriving
    return [made[owner] for owner in range(n)]


def scattered_product(comm, product: Callable) -> torch.Tensor:
    """Return the sum of product(r) over all ranks, on rank r.

    product: a new tensor for the rank r; all have one shape.
    Cost: n - 1 messages, those of a ring reduce-scatter; each overlaps with a product.
    """
    n, rank = comm.world_size, comm.rank
    total = product((rank - 1) % n).contiguous()
    for step in range(1, n):
        arriving = torch.empty_like(total)
        request = comm.start(_pass_on, total, arriving)
        own = product((rank - 1 - step) % n)
        request.wait()
        total = arriving.add_(own)
    return total


def gathered_linear(comm, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return linear(all-gather of x, weight), the rows of each rank in turn.

    x: this rank's rows, [rows / n, width]. weight: this rank's outputs, as nn.Linear's.
    """
    _checked(comm, x, weight, 1)
    return _GatheredLinear.apply(comm, x, weight)


def scattered_linear(comm, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return this rank's rows of the sum over all ranks of linear(x, weight).

    x: [rows, this rank's columns]. weight: this rank's inputs, as nn.Linear's.
    """
    _checked(comm, x, weight, comm.world_size)
    return _ScatteredLinear.apply(comm, x, weight)


def _pass_on(comm, outgoing, arriving):
    n, rank = comm.world_size, comm.rank
    comm.sendrecv(outgoing, arriving, dst=(rank + 1) % n, src=(rank - 1) % n)


class _GatheredLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, comm, x, weight):
        ctx.comm = comm
        ctx.save_for_backward(x, weight)
        return torch.cat(gathered_product(comm, x, lambda rows, _: rows @ weight.T))

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        comm, (x, weight) = ctx.comm, ctx.saved_tensors
        parts = gradient.chunk(comm.world_size)
        d_x = scattered_product(comm, lambda owner: parts[owner] @ weight)
        terms = gathered_product(comm, x, lambda rows, owner: parts[owner].T @ rows)
        return None, d_x, sum(terms)


class _ScatteredLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, comm, x, weight):
        ctx.comm = comm
        ctx.save_for_backward(x, weight)
        parts = x.chunk(comm.world_size)
        return scattered_product(comm, lambda owner: parts[owner] @ weight.T)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        comm, (x, weight) = ctx.comm, ctx.saved_tensors
        parts = x.chunk(comm.world_size)

        def both(rows, owner):
            return rows @ weight, rows.T @ parts[owner]

        d_x, terms = zip(*gathered_product(comm, gradient, both), strict=True)
        return None, torch.cat(d_x), sum(terms)


def _checked(comm, x, weight, parts):
    fits = x.ndim == weight.ndim == 2 and x.shape[1] == weight.shape[1] and len(x)
    if not fits or len(x) % parts:
        raise InvalidArgument(
            f"rank {comm.rank}: x is [rows, inputs] and weight [outputs, inputs], with "
            f"rows for each of {parts} ranks: {[*x.shape]} and {[*weight.shape]}."
        )
