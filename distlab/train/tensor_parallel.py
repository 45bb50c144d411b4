"""Tensor parallelism: every layer sharded over the ranks, which sum partial results.

      x ─ f ─▶ A's columns of this rank ─▶ GELU ─▶ B's rows of this rank ─ g ─▶ y

    f   forward: nothing       backward: all-reduce    each rank has part of dx
    g   forward: all-reduce    backward: nothing       each rank has part of y

Cut by columns, A gives each rank the columns of its output that the rows of B on the
same rank need, so no message is needed between the two. Attention is cut the same way,
by heads. f and g are conjugate: each one's backward equals the other's forward.

Sequence parallelism replaces both. Norms and residuals then work on this rank's shard
of the sequence; f becomes an all-gather and g a reduce-scatter, which together are an
all-reduce: the same bytes. Replicated parameters then see only a shard, and
`finalize_gradients` of `shared_parameters` adds up their gradients before a step.

Source: Shoeybi et al., "Megatron-LM: training multi-billion parameter language models
using model parallelism" (2019); Korthikanti et al., "Reducing activation recomputation
in large transformer models" (2022), section 4.2.
"""

import copy

import torch
from torch import nn
from torch.nn import functional

from distlab.collectives import ring_all_reduce
from distlab.collectives.chunks import chunk_edges, chunk_lengths
from distlab.errors import InvalidArgument
from distlab.train.models import Block

__all__ = ["ColumnParallelLinear", "ParallelAttention", "ParallelBlock", "ParallelMLP"]
__all__ += ["RowParallelLinear", "copy_to_ranks", "gather_sequence", "own_range"]
__all__ += ["part_of", "reduce_from_ranks", "scatter_sequence"]


# ---- f, g and the other conjugate pairs -----------------------------------------


def copy_to_ranks(comm, x: torch.Tensor) -> torch.Tensor:
    """Return x; its gradient is the sum of all ranks'. Megatron's f.

    Megatron-LM: copy_to_tensor_model_parallel_region.
    """
    return _Conjugate.apply(comm, x, _same, _sum)


def reduce_from_ranks(comm, x: torch.Tensor) -> torch.Tensor:
    """Return the sum of all ranks' x; its gradient is that of the sum. Megatron's g.

    Megatron-LM: reduce_from_tensor_model_parallel_region.
    """
    return _Conjugate.apply(comm, x, _sum, _same)


def gather_sequence(comm, x: torch.Tensor, length: int) -> torch.Tensor:
    """Return the sequence of which each rank has a shard; reduce-scatter in backward.

    x: [batch, this rank's shard, ...]. length: of the whole; the shards are those of
        `chunk_lengths`, and need not be equal.
    Megatron-LM: gather_from_sequence_parallel_region.
    """
    return _Conjugate.apply(comm, x, _gather(length), _reduce_scatter)


def scatter_sequence(comm, x: torch.Tensor) -> torch.Tensor:
    """Return this rank's shard of the sum of all ranks' x; all-gather in backward.

    Megatron-LM: reduce_scatter_to_sequence_parallel_region.
    """
    return _Conjugate.apply(comm, x, _reduce_scatter, _gather(x.shape[1]))


class _Conjugate(torch.autograd.Function):
    """One function forward, and backward the other; each of (comm, tensor)."""

    @staticmethod
    def forward(ctx, comm, x, forward, backward):
        ctx.comm, ctx.conjugate = comm, backward
        return forward(comm, x.detach())

    @staticmethod
    def backward(ctx, gradient):
        return None, ctx.conjugate(ctx.comm, gradient), None, None


def _same(comm, x):
    return x.view_as(x)


def _sum(comm, x):
    total = x.clone(memory_format=torch.contiguous_format)
    ring_all_reduce(comm, total)
    return total


def _gather(length):
    def gather(comm, piece):
        own = chunk_lengths(length, comm.world_size)[comm.rank]
        if piece.shape[1] != own:
            raise InvalidArgument(
                f"rank {comm.rank} has {piece.shape[1]} places of a sequence of "
                f"{length}, and its piece on {comm.world_size} ranks is {own}."
            )
        rows = piece.transpose(0, 1)
        whole = rows.new_empty(length, *rows.shape[1:])
        pieces = whole.split(chunk_lengths(length, comm.world_size))
        pieces[comm.rank].copy_(rows)
        _around_the_ring(comm, pieces, adds=False)
        return whole.transpose(0, 1).contiguous()

    return gather


def _reduce_scatter(comm, x):
    rows = x.transpose(0, 1).clone(memory_format=torch.contiguous_format)
    pieces = rows.split(chunk_lengths(len(rows), comm.world_size))
    _around_the_ring(comm, pieces, adds=True)
    own = pieces[comm.rank].transpose(0, 1)
    return own.clone(memory_format=torch.contiguous_format)


def _around_the_ring(comm, pieces, *, adds):
    """Run a ring reduce-scatter, or a ring all-gather, on pieces of any length.

    Cost: n-1 rounds; every rank sends all pieces but one.
    """
    n, rank = comm.world_size, comm.rank
    phase = "reduce-scatter" if adds else "all-gather"
    arrived = torch.empty_like(pieces[0]) if adds else None  # the first is the longest
    for step in range(n - 1):
        comm.mark(f"{phase}, step {step + 1} of {n - 1}")
        at = rank - step - adds
        outgoing, target = pieces[at % n], pieces[(at - 1) % n]
        room = arrived[: len(target)] if adds else target
        comm.sendrecv(outgoing, room, dst=(rank + 1) % n, src=(rank - 1) % n)
        if adds:
            target += room


# ---- layers that are cut --------------------------------------------------------


class ColumnParallelLinear(nn.Module):
    """A linear layer of which this rank has some columns of the output.

    linear: the whole layer, the same on all ranks; this rank keeps a copy of its shard.
    unit: number of columns that stay together, such as those of a head. fused: number
        of matrices one after another in the weight, each cut by itself.
    sequence: True if the input is this rank's shard of a sequence; then the length of
        the whole is passed to forward, too.
    """

    sharded = ("weight", "bias")

    def __init__(self, comm, linear: nn.Linear, *, unit=1, fused=1, sequence=False):
        super().__init__()
        self.comm, self.sequence = comm, sequence
        start, end = own_range(comm, linear.out_features // fused, unit)

        def own(parameter):
            cut = parameter.unflatten(0, (fused, -1))[:, start:end].flatten(0, 1)
            return part_of(parameter, cut)

        self.weight = own(linear.weight)
        self.bias = None if linear.bias is None else own(linear.bias)

    def forward(self, x: torch.Tensor, length: int | None = None) -> torch.Tensor:
        """Return this rank's columns of the output."""
        if self.sequence:
            x = gather_sequence(self.comm, x, length)
        else:
            x = copy_to_ranks(self.comm, x)
        return functional.linear(x, self.weight, self.bias)


class RowParallelLinear(nn.Module):
    """A linear layer of which this rank has some columns of the input.

    linear, unit: as of a `ColumnParallelLinear`. The bias is added once, to the sum.
    sequence: True for an output that is this rank's shard of the sequence.
    """

    sharded = ("weight",)

    def __init__(self, comm, linear: nn.Linear, *, unit=1, sequence=False):
        super().__init__()
        self.comm, self.sequence = comm, sequence
        start, end = own_range(comm, linear.in_features, unit)
        self.weight = part_of(linear.weight, linear.weight[:, start:end])
        bias = linear.bias
        self.bias = None if bias is None else part_of(bias, bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the whole output; x: this rank's columns of the input."""
        leave = scatter_sequence if self.sequence else reduce_from_ranks
        y = leave(self.comm, functional.linear(x, self.weight))
        return y if self.bias is None else y + self.bias


class ParallelMLP(nn.Module):
    """The network of a `Block`, its hidden columns sharded over the ranks.

    Cost: one all-reduce in forward and one in backward, of the input's bytes each; with
        sequence the same bytes as an all-gather and a reduce-scatter each way.
    """

    def __init__(self, comm, network: nn.Sequential, *, sequence=False):
        super().__init__()
        up, self.between, down = network
        self.up = ColumnParallelLinear(comm, up, sequence=sequence)
        self.down = RowParallelLinear(comm, down, sequence=sequence)

    def forward(self, x: torch.Tensor, length: int | None = None) -> torch.Tensor:
        """Return the network's output; length: as of a `ColumnParallelLinear`."""
        return self.down(self.between(self.up(x, length)))


class ParallelAttention(nn.Module):
    """The attention of a `Block`, its heads sharded over the ranks.

    Raises: InvalidArgument for fewer heads than ranks.
    Cost: as of a `ParallelMLP`.
    """

    def __init__(self, comm, block: Block, *, sequence=False):
        super().__init__()
        width = block.after_attention.in_features
        if width % block.heads or block.heads < comm.world_size:
            raise InvalidArgument(
                f"a width of {width} and {block.heads} heads do not make whole heads "
                f"for {comm.world_size} ranks, one for each at least."
            )
        self.size = width // block.heads
        qkv, out = block.queries_keys_values, block.after_attention
        how = {"unit": self.size, "sequence": sequence}
        self.queries_keys_values = ColumnParallelLinear(comm, qkv, fused=3, **how)
        self.after_attention = RowParallelLinear(comm, out, **how)

    def forward(self, x: torch.Tensor, length: int | None = None) -> torch.Tensor:
        """Return attention's output; length: as of a `ColumnParallelLinear`."""
        split = self.queries_keys_values(x, length).unflatten(-1, (3, -1, self.size))
        q, k, v = split.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.after_attention(seen.transpose(1, 2).flatten(2))


class ParallelBlock(nn.Module):
    """A `Block` sharded over the ranks; equals it, forward and backward.

    x: the whole input on every rank, as is the output; with sequence this rank's shard
        along dim 1, as `scatter_sequence` cuts it, and `length` of the whole.
    """

    def __init__(self, comm, block: Block, *, sequence=False):
        super().__init__()
        self.sequence = sequence
        self.before_attention = copy.deepcopy(block.before_attention)
        self.attention = ParallelAttention(comm, block, sequence=sequence)
        self.before_network = copy.deepcopy(block.before_network)
        self.network = ParallelMLP(comm, block.network, sequence=sequence)

    def forward(self, x: torch.Tensor, length: int | None = None) -> torch.Tensor:
        """Return x plus the outputs of attention and network."""
        x = x + self.attention(self.before_attention(x), length)
        return x + self.network(self.before_network(x), length)


def own_range(comm, count: int, unit: int = 1) -> tuple[int, int]:
    """Return the first index, and the end, of this rank's part of `count` columns.

    unit: number that stay together; parts differ by one unit at most.
    """
    edges = chunk_edges(count // unit, comm.world_size)
    return unit * edges[comm.rank], unit * edges[comm.rank + 1]


def part_of(parameter: nn.Parameter, part: torch.Tensor) -> nn.Parameter:
    """Return a copy of a part of a parameter, with its requires_grad."""
    own = part.detach().clone(memory_format=torch.contiguous_format)
    return nn.Parameter(own, requires_grad=parameter.requires_grad)
