"""Tensor parallelism: the matrices of one layer on several ranks.

              columns of A         rows of B
    x ──f──▶ x A_r ──GELU──▶ h_r ──▶ h_r B_r ──g──▶ y
        forward   f: nothing           g: all-reduce
        backward  f: all-reduce        g: nothing

Each rank has its columns of the first matrix and the same rows of the second, so that
what lies between, however nonlinear, stays where it is. The two sums that remain, of y
forward and of the gradient of x backward, are f's and g's.

With sequence parallelism, what is outside of f and g is cut along the sequence, too: f
gathers it and g scatters its sum. A reduce-scatter and an all-gather are the two halves
of a ring all-reduce, so the bytes are the same.

Source: Shoeybi et al., "Megatron-LM" (2019), section 3; Korthikanti et al., "Reducing
activation recomputation in large transformer models" (2022), section 4.2.
"""

import copy
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.nn import functional

from distlab.collectives import (
    MAX,
    ring_all_gather,
    ring_all_reduce,
    ring_reduce_scatter,
)
from distlab.errors import InvalidArgument
from distlab.simulated import Payload

__all__ = [
    "ColumnParallelLinear",
    "ParallelAttention",
    "ParallelBlock",
    "ParallelGPT",
    "ParallelMLP",
    "RowParallelLinear",
    "VocabParallelEmbedding",
    "clip_gradients",
    "copy_to_ranks",
    "gather_sequence",
    "layer_on_the_clock",
    "own_part",
    "own_randomness",
    "reduce_from_ranks",
    "scatter_sequence",
    "sum_replicated_gradients",
    "vocab_parallel_cross_entropy",
]


# ---- between the regions -------------------------------------------------------


class _Between(torch.autograd.Function):
    """A function of (comm, tensor) forward, and the conjugate one backward."""

    @staticmethod
    def forward(ctx, comm, x, forward, backward):
        ctx.comm, ctx.backward_by = comm, backward
        return forward(comm, x)

    @staticmethod
    def backward(ctx, gradient):
        return None, ctx.backward_by(ctx.comm, gradient), None, None


def copy_to_ranks(comm, x: torch.Tensor) -> torch.Tensor:
    """Return x, whose gradients are summed over the ranks backward: f.

    Called by a column-parallel layer, each rank of which uses all of x.
    Megatron-LM: copy_to_tensor_model_parallel_region.
    """
    return _Between.apply(comm, x, _same, _summed)


def reduce_from_ranks(comm, x: torch.Tensor) -> torch.Tensor:
    """Return the sum of all ranks' x; backward, each of them has its gradient: g.

    Called by a row-parallel layer.
    Megatron-LM: reduce_from_tensor_model_parallel_region.
    """
    return _Between.apply(comm, x, _summed, _same)


def gather_sequence(comm, x: torch.Tensor) -> torch.Tensor:
    """Return the whole sequence of which x is this rank's piece; f in a cut region.

    x: [batch, length / n, width]. Backward, gradients are summed and scattered.
    Megatron-LM: gather_from_sequence_parallel_region.
    """
    return _Between.apply(comm, x, _gathered, _scattered)


def scatter_sequence(comm, x: torch.Tensor) -> torch.Tensor:
    """Return this rank's piece of the sequence of the sum of all ranks' x; so g is.

    x: [batch, length, width]. Backward, gradients are gathered.
    Megatron-LM: reduce_scatter_to_sequence_parallel_region.

    Raises: InvalidArgument if the sequence does not divide by the number of ranks.
    """
    return _Between.apply(comm, x, _scattered, _gathered)


def _same(comm, x):
    return x.view_as(x)


def _summed(comm, x):
    total = x.detach().clone(memory_format=torch.contiguous_format)
    ring_all_reduce(comm, total)
    return total


def _gathered(comm, x):
    return torch.cat(ring_all_gather(comm, x.detach().contiguous()), dim=1)


def _scattered(comm, x):
    batch, length, width = x.shape
    if length % comm.world_size:
        raise InvalidArgument(
            f"{length} tokens of a sequence do not divide by {comm.world_size} ranks. "
            "Pad it, or use another number of ranks."
        )
    by_length = x.detach().transpose(0, 1).clone(memory_format=torch.contiguous_format)
    piece = ring_reduce_scatter(comm, by_length)
    return piece.view(-1, batch, width).transpose(0, 1).contiguous()


# ---- layers --------------------------------------------------------------------


def own_part(comm, count: int, what: str = "columns") -> slice:
    """Return which of `count` columns, heads or tokens are this rank's.

    Ranks differ by one at most, and the first have more.

    Raises: InvalidArgument if there are fewer than ranks.
    """
    n, rank = comm.world_size, comm.rank
    if count < n:
        raise InvalidArgument(
            f"{count} {what} cannot be split over {n} ranks: each needs at least one."
        )
    short, longer = divmod(count, n)
    start = rank * short + min(rank, longer)
    return slice(start, start + short + (rank < longer))


class ColumnParallelLinear(nn.Module):
    """This rank's outputs of a linear layer: x is whole, the result its columns.

    linear: the whole layer, alike on all ranks, of which a copy of a part is kept.
    columns: which outputs, else `own_part` of them. f, by which x comes in, is the
    caller's, so that several layers share one.
    """

    def __init__(self, comm, linear: nn.Linear, columns=None):
        super().__init__()
        columns = own_part(comm, linear.out_features) if columns is None else columns
        self.weight = _sharded(linear.weight[columns])
        self.bias = None if linear.bias is None else _sharded(linear.bias[columns])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x W_r^T + b_r."""
        return functional.linear(x, self.weight, self.bias)


class RowParallelLinear(nn.Module):
    """A linear layer of inputs that are spread over ranks, summed by g.

    rows: which inputs are this rank's, else `own_part` of them. leave: g, or
    `scatter_sequence`. The bias is whole on each rank, and added once, after the sum.
    """

    def __init__(
        self, comm, linear: nn.Linear, rows=None, leave: Callable = reduce_from_ranks
    ):
        super().__init__()
        rows = own_part(comm, linear.in_features, "rows") if rows is None else rows
        self.comm, self.leave = comm, leave
        self.weight = _sharded(linear.weight[:, rows])
        self.bias = None
        if linear.bias is not None:
            self.bias = nn.Parameter(linear.bias.detach().clone())

    def forward(self, h: torch.Tensor) -> torch.Tensor:
        """Return the sum of all ranks' h_r W_r^T, and the bias."""
        y = self.leave(self.comm, functional.linear(h, self.weight))
        return y if self.bias is None else y + self.bias


def _sharded(part):
    """Return a parameter with a copy of this part, which this rank alone has."""
    contiguous = {"memory_format": torch.contiguous_format}
    parameter = nn.Parameter(part.detach().clone(**contiguous))
    parameter.is_sharded = True
    return parameter


class ParallelMLP(nn.Module):
    """The two linear layers of a block's network, with the activation between them.

    network: linear, activation, linear. enter, leave: f and g, or with sequence
    parallelism `gather_sequence` and `scatter_sequence`.
    """

    def __init__(self, comm, network, enter=copy_to_ranks, leave=reduce_from_ranks):
        super().__init__()
        first, self.activation, second = network
        self.comm, self.enter = comm, enter
        self.columns = ColumnParallelLinear(comm, first)
        self.rows = RowParallelLinear(comm, second, leave=leave)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return what the unsplit network returns."""
        h = self.columns(self.enter(self.comm, x))
        return self.rows(self.activation(h))


class ParallelAttention(nn.Module):
    """This rank's heads of a causal self-attention: q, k and v of a head are together.

    queries_keys_values: width -> 3 width, after_attention: width -> width.

    Raises: InvalidArgument if there are fewer heads than ranks, or the width does not
        divide by the heads.
    """

    def __init__(
        self, comm, queries_keys_values, after_attention, heads: int,
        enter=copy_to_ranks, leave=reduce_from_ranks,
    ):  # fmt: skip
        super().__init__()
        width = after_attention.in_features
        if width % heads:
            raise InvalidArgument(
                f"a width of {width} does not divide into {heads} heads of equal size."
            )
        own, size = own_part(comm, heads, "heads"), width // heads
        self.comm, self.enter = comm, enter
        self.heads, self.head_dim = own.stop - own.start, size
        places = torch.arange(3 * width).view(3, heads, size)
        self.columns = ColumnParallelLinear(
            comm, queries_keys_values, places[:, own].flatten()
        )
        rows = slice(own.start * size, own.stop * size)
        self.rows = RowParallelLinear(comm, after_attention, rows, leave)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return what the unsplit attention returns."""
        split = self.columns(self.enter(self.comm, x))
        split = split.unflatten(-1, (3, self.heads, self.head_dim))
        q, k, v = split.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.rows(seen.transpose(1, 2).flatten(2))


class ParallelBlock(nn.Module):
    """A block of a GPT: one all-reduce each way for its attention, and for its network.

    block: a `models.Block`, alike on all ranks. sequence: whether norms and sums are
    of this rank's piece of the sequence only; then x and the result are, too.
    Cost: forward 4(n-1)/n of the activation's bytes per rank, and backward as many.
    """

    def __init__(self, comm, block: nn.Module, *, sequence: bool = False):
        super().__init__()
        ways = _ways(sequence)
        self.before_attention = copy.deepcopy(block.before_attention)
        self.attention = ParallelAttention(
            comm, block.queries_keys_values, block.after_attention, block.heads, *ways
        )
        self.before_network = copy.deepcopy(block.before_network)
        self.network = ParallelMLP(comm, block.network, *ways)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x with what attention and network add to it."""
        x = x + self.attention(self.before_attention(x))
        return x + self.network(self.before_network(x))


def _ways(sequence):
    if sequence:
        return gather_sequence, scatter_sequence
    return copy_to_ranks, reduce_from_ranks


# ---- the vocabulary ------------------------------------------------------------


class VocabParallelEmbedding(nn.Module):
    """The rows of an embedding that are this rank's; g adds those of the others."""

    def __init__(self, comm, embedding: nn.Embedding, leave=reduce_from_ranks):
        super().__init__()
        self.comm, self.leave = comm, leave
        self.own = own_part(comm, embedding.num_embeddings, "tokens of the vocabulary")
        self.weight = _sharded(embedding.weight[self.own])

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the embedding of each token: [*tokens.shape, width]."""
        here = (tokens >= self.own.start) & (tokens < self.own.stop)
        rows = functional.embedding(
            (tokens - self.own.start).where(here, 0), self.weight
        )
        return self.leave(self.comm, rows * here[..., None])


def vocab_parallel_cross_entropy(
    comm, logits: torch.Tensor, targets: torch.Tensor, vocabulary: int
) -> torch.Tensor:
    """Return the mean cross-entropy of logits of which each rank has its part.

    logits: [tokens, own part of the vocabulary]. targets: [tokens], on every rank.
    Cost: three all-reduces of one number per token, not the logits.
    """
    own = own_part(comm, vocabulary, "tokens of the vocabulary")
    highest = logits.detach().amax(-1)
    ring_all_reduce(comm, highest, op=MAX)
    logits = logits - highest[:, None]
    total = reduce_from_ranks(comm, logits.exp().sum(-1))
    here = (targets >= own.start) & (targets < own.stop)
    place = (targets - own.start).where(here, 0)[:, None]
    of_target = reduce_from_ranks(comm, logits.gather(-1, place)[:, 0] * here)
    return (total.log() - of_target).mean()


class ParallelGPT(nn.Module):
    """A whole GPT, tensor-parallel: `models.GPT` of which each rank has its part.

    gpt: alike on all ranks. layers: embedding, blocks and head in order, so that a
    pipeline's stage is a slice of them. After backward comes
    `sum_replicated_gradients` if `sequence`.
    """

    def __init__(self, comm, gpt: nn.Module, *, sequence: bool = False):
        super().__init__()
        self.comm, self.vocabulary = comm, gpt.scores.out_features
        blocks = [ParallelBlock(comm, each, sequence=sequence) for each in gpt.blocks]
        ends = _Embedding(comm, gpt, sequence), _Head(comm, gpt, sequence)
        self.layers = nn.Sequential(ends[0], *blocks, ends[1])

    def loss(self, text: torch.Tensor) -> torch.Tensor:
        """Return the mean cross-entropy at each byte after the first, in nats."""
        return self.loss_of(self.layers(text[:, :-1]), text[:, 1:])

    def loss_of(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the loss of what the last layer gave: [batch, length, own part]."""
        return vocab_parallel_cross_entropy(
            self.comm, logits.flatten(0, 1), targets.flatten(), self.vocabulary
        )


class _Embedding(nn.Module):
    def __init__(self, comm, gpt, sequence):
        super().__init__()
        self.comm, self.sequence = comm, sequence
        self.bytes = VocabParallelEmbedding(comm, gpt.bytes, _ways(sequence)[1])
        self.places = copy.deepcopy(gpt.places)

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1], device=tokens.device)
        if self.sequence:
            places = places[own_part(self.comm, len(places), "tokens")]
        return self.bytes(tokens) + self.places(places)


class _Head(nn.Module):
    def __init__(self, comm, gpt, sequence):
        super().__init__()
        self.comm, self.enter = comm, _ways(sequence)[0]
        self.norm = copy.deepcopy(gpt.last_norm)
        self.scores = ColumnParallelLinear(comm, gpt.scores)

    def forward(self, x):
        return self.scores(self.enter(self.comm, self.norm(x)))


# ---- after backward ------------------------------------------------------------


def sum_replicated_gradients(comm, module: nn.Module) -> None:
    """Sum the gradients of parameters that every rank has, with sequence parallelism.

    Each rank has put only its piece of the sequence through them: norms, biases added
    after g, embeddings of places. Without sequence parallelism their gradients are
    whole already. Megatron-LM: finalize_model_grads.
    Cost: one all-reduce of all of them.
    """
    shared = [
        p for p in module.parameters() if not _is_sharded(p) and p.grad is not None
    ]
    if shared:
        flat = torch.cat([p.grad.flatten() for p in shared])
        ring_all_reduce(comm, flat)
        for p, part in zip(
            shared, flat.split([p.numel() for p in shared]), strict=True
        ):
            p.grad.copy_(part.view_as(p))


def clip_gradients(
    parameters: Iterable[nn.Parameter], most: float, *, split, others: Iterable = ()
) -> float:
    """Scale gradients to a norm over the whole mesh of at most `most`; return the norm.

    split: the Comm over which layers are split; what every rank of it has counts once.
    others: further Comms whose ranks have other parameters, such as a pipeline's.
    """
    parameters = [p for p in parameters if p.grad is not None]
    own, shared = torch.zeros(2, 1, dtype=torch.float64)
    for p in parameters:
        (own if _is_sharded(p) else shared).add_(p.grad.double().square().sum())
    ring_all_reduce(split, own)
    own += shared
    for comm in others:
        ring_all_reduce(comm, own)
    norm = own.sqrt().item()
    for p in parameters:
        p.grad.mul_(min(1.0, most / (norm + 1e-6)))
    return norm


def _is_sharded(parameter):
    return getattr(parameter, "is_sharded", False)


@contextmanager
def own_randomness(comm, seed: int) -> Iterator[None]:
    """Draw other random numbers on each rank in here; the same as before outside.

    Dropout of what ranks have cut, such as the heads or a piece of the sequence, must
    differ between them, and dropout of what all have must not: else their copies part.
    Megatron-LM: get_cuda_rng_tracker().fork().
    """
    with torch.random.fork_rng():
        torch.manual_seed(seed * comm.world_size + comm.rank)
        yield


# ---- how long a layer takes ------------------------------------------------------


def layer_on_the_clock(
    comm, *, length: int, batch: int, width: int, flops_per_s: float, itemsize: int = 2
) -> None:
    """Compute and send what one layer does, forward and backward, on a virtual clock.

    length, batch, width: s, b, h. flops_per_s: what one GPU computes. Forward a layer
    has 24 s b h^2 + 4 s^2 b h flops, backward twice as many, split over the ranks; its
    attention and its network have an all-reduce each way.
    """
    n, tensor_bytes = comm.world_size, length * batch * width * itemsize
    flops = 24 * length * batch * width**2 + 4 * length**2 * batch * width
    chunk = Payload(tensor_bytes // n)
    for part, times in (("forward", 1), ("backward", 2)):
        for half in ("attention", "network"):
            seconds = times * flops / 2 / n / flops_per_s
            with comm.work(f"{part} of {half}", seconds=seconds):
                pass
            for _ in range(2 * (n - 1)):
                comm.sendrecv(
                    chunk, chunk, dst=(comm.rank + 1) % n, src=(comm.rank - 1) % n
                )
