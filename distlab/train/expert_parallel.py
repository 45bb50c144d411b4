"""Expert parallelism: a mixture of experts that are distributed over the ranks.

    tokens of a rank ── router: k experts each ── sorted by expert ── all-to-all ──┐
    weighted sums, in the tokens' order ── all-to-all ── experts, on their ranks ──┘

The router, which all ranks have, gives a token a softmax over all experts. The largest
k count, scaled to a sum of 1; for k = 1 the weight is the probability itself, or the
router would get no gradient.

Capacity: of a rank's T tokens each of E experts takes ceil(factor k T / E) at most. The
others are dropped: all first choices go before second ones, and among these earlier
tokens before later ones. A choice that is dropped adds nothing to the output.

Auxiliary loss: E sum_e f_e P_e. f_e is the fraction of all choices that fall on expert
e, without gradient, P_e its mean probability: 1 if all is even, E if all choose one.

Bias: instead of that loss, a number for each expert is added to its probability where
the k are chosen, and only there. After a step `balanced_bias` lowers it where an expert
had more than the mean, and raises it elsewhere. It has no gradient.

Gradients: let each rank's loss be its share of the whole, such as the sum over its own
tokens divided by the number of all; the auxiliary loss is given so. Then gradients of
experts are complete, and those of all that is replicated, as the router, have to be
summed over the ranks. Data parallelism averages: there, divide the experts' by n.

Source: Lepikhin et al., "GShard" (2021), algorithm 1; Fedus et al., "Switch
transformers" (2022), section 2.2; bias: Wang et al., "Auxiliary-loss-free load
balancing strategy for mixture-of-experts" (2024), used by DeepSeek-V3.
"""

import itertools
import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.autograd.function import once_differentiable

from distlab.collectives import pairwise_all_to_all, ring_all_gather
from distlab.collectives.chunks import chunk_edges
from distlab.errors import InvalidArgument
from distlab.train.replica_checks import check_same_model, copy_from_rank_0

__all__ = ["MixtureOfExperts", "Routing", "StartedExchange", "balanced_bias"]
__all__ += ["exchange_rows", "own_experts", "within_capacity"]


def own_experts(comm, count: int) -> range:
    """Return the numbers of this rank's experts, of `count`, as even as possible."""
    edges = chunk_edges(count, comm.world_size)
    return range(edges[comm.rank], edges[comm.rank + 1])


def within_capacity(chosen: torch.Tensor, experts: int, capacity: int) -> torch.Tensor:
    """Return the positions of the choices that are kept, sorted by expert.

    chosen: the expert of each choice; an earlier choice goes before a later one.
    """
    counts = torch.bincount(chosen, minlength=experts)
    order = chosen.argsort(stable=True)
    starts = (counts.cumsum(0) - counts)[chosen[order]]
    place = torch.arange(len(order), device=order.device) - starts
    return order[place < capacity]


def balanced_bias(bias: torch.Tensor, choices: list[int], rate: float) -> torch.Tensor:
    """Return each expert's bias for the next step, from the choices of all ranks.

    rate: what a bias changes in a step; DeepSeek-V3 takes 0.001.
    Raises: InvalidArgument for choices that are not one number for each expert.
    """
    if len(choices) != len(bias):
        raise InvalidArgument(
            f"a bias for each of {len(bias)} experts needs as many counts of choices, "
            f"and got {len(choices)}: give layer.routing.choices."
        )
    load = bias.new_tensor(choices)
    return bias - rate * (load - load.mean()).sign()


@dataclass(frozen=True)
class Routing:
    """The destinations of the tokens of one forward; the same on all ranks.

    routed, kept: for each rank and expert, the number of the rank's tokens that chose
        the expert, and of those that it computes. owners: the rank of each expert.
    capacity: the most tokens that an expert computes, or None. row_bytes: of a token.
    """

    routed: list[list[int]]
    kept: list[list[int]]
    owners: list[int]
    capacity: int | None
    row_bytes: int

    @property
    def choices(self) -> list[int]:
        """The number of tokens that chose each expert."""
        return [sum(column) for column in zip(*self.routed, strict=True)]

    @property
    def tokens(self) -> list[int]:
        """The number of tokens that each expert computes."""
        return [sum(column) for column in zip(*self.kept, strict=True)]

    @property
    def dropped(self) -> int:
        """The number of choices over an expert's capacity."""
        return sum(self.choices) - sum(self.tokens)

    @property
    def imbalance(self) -> float:
        """The choices of the most chosen expert, over those of the mean one."""
        return max(self.choices) * len(self.owners) / max(sum(self.choices), 1)

    @property
    def without_tokens(self) -> list[int]:
        """The experts that compute no token; their gradients are zero."""
        return [expert for expert, count in enumerate(self.tokens) if not count]

    @property
    def sent_bytes(self) -> list[int]:
        """The bytes that each rank sends in the two all-to-alls; backward as many."""
        sent = [0] * len(self.kept)
        for rank, row in enumerate(self.kept):
            for count, owner in zip(row, self.owners, strict=True):
                for sender in (rank, owner) if rank != owner else ():
                    sent[sender] += count * self.row_bytes
        return sent


class MixtureOfExperts(nn.Module):
    """A layer of experts that are spread over the ranks; a token uses k of them.

        experts = [make_expert(number) for number in own_experts(comm, 8)]
        layer = MixtureOfExperts(comm, nn.Linear(width, 8), experts)
        output, auxiliary_loss = layer(x)

    router: from a token to a logit for each expert; all get rank 0's values.
    experts: this rank's own; they keep the width of rows, of which they may get none.
    capacity_factor: None drops nothing. routing: the `Routing` of the last forward.
    bias: for each expert, added where the k are chosen; see `balanced_bias`.
    Cost: n-1 messages of 16 bytes per expert, then 2(n-1) of tokens; in backward,
        2(n-1) of their gradients. All ranks take part in both.
    """

    routing: Routing | None = None

    def __init__(self, comm, router, experts, *, top_k=2, capacity_factor=1.25):
        super().__init__()
        count = torch.tensor(len(experts), device=comm.device)
        counts = [int(each) for each in ring_all_gather(comm, count)]
        self.owners = [rank for rank, own in enumerate(counts) for _ in range(own)]
        _check(counts, top_k, capacity_factor)
        check_same_model(comm, router)
        copy_from_rank_0(comm, router)
        self.comm, self.router = comm, router
        self.top_k, self.capacity_factor = top_k, capacity_factor
        self.register_buffer("bias", torch.zeros(len(self.owners), device=comm.device))
        self.own = [e for e, owner in enumerate(self.owners) if owner == comm.rank]
        names = map(str, self.own)  # an expert's name is its number among all
        self.experts = nn.ModuleDict(zip(names, experts, strict=True))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the experts' output for x, [..., width], and the auxiliary loss."""
        tokens = x.reshape(-1, x.shape[-1])
        p = self.router(tokens).softmax(-1)
        if p.shape[-1] != len(self.owners):
            words = f"the router knows {p.shape[-1]} experts, of {len(self.owners)}."
            raise InvalidArgument(f"rank {self.comm.rank}: {words}")
        chosen = (p.detach() + self.bias).topk(self.top_k).indices
        weights = p.gather(-1, chosen)
        if self.top_k > 1:
            weights = weights / weights.sum(-1, keepdim=True)
        chosen, weights = chosen.T.flatten(), weights.T.flatten()  # first choices first
        kept, counts = self._within_capacity(chosen, len(tokens))
        self.routing = self._routing(counts, tokens)
        token = kept % max(len(tokens), 1)
        made = self._by_experts(tokens[token]) * weights[kept, None]
        output = torch.zeros_like(tokens).index_add(0, token, made)
        total = max(sum(self.routing.choices), 1)  # top_k for each token of all ranks
        fractions = p.new_tensor([each / total for each in self.routing.choices])
        auxiliary = len(self.owners) * (fractions @ p.sum(0)) * (self.top_k / total)
        return output.reshape(x.shape), auxiliary

    def _capacity(self, tokens):
        """Return the most of a rank's tokens that an expert computes."""
        if self.capacity_factor is None:
            return tokens
        even = self.top_k * tokens / len(self.owners)
        return math.ceil(self.capacity_factor * even - 1e-9)  # 1.1 times 10 is 11

    def _within_capacity(self, chosen, tokens):
        """Return the kept choices, by expert, and counts [2, experts]: made, kept."""
        experts, capacity = len(self.owners), self._capacity(tokens)
        made = torch.bincount(chosen, minlength=experts)
        kept = within_capacity(chosen, experts, capacity)
        return kept, torch.stack([made, made.clamp(max=capacity)])

    def _routing(self, counts, tokens):
        gathered = [each.tolist() for each in ring_all_gather(self.comm, counts)]
        routed, kept = (list(each) for each in zip(*gathered, strict=True))
        most = sum(self._capacity(sum(row) // self.top_k) for row in routed)
        capacity = most if self.capacity_factor else None
        row_bytes = tokens.shape[-1] * tokens.element_size()
        return Routing(routed, kept, self.owners, capacity, row_bytes)

    def _by_experts(self, rows):
        """Send rows, sorted by expert, to their experts; return the experts' output."""
        comm, kept, m = self.comm, self.routing.kept, len(self.own)
        outgoing = [0] * comm.world_size
        for count, owner in zip(kept[comm.rank], self.owners, strict=True):
            outgoing[owner] += count
        counts = [row[expert] for row in kept for expert in self.own]
        incoming = [sum(counts[at : at + m]) for at in range(0, len(counts), m)]
        parts = exchange_rows(comm, rows, outgoing, incoming).split(counts)
        with comm.work(f"experts {', '.join(self.experts)}"):
            made = [
                expert(torch.cat(parts[place::m])).split(counts[place::m])
                for place, expert in enumerate(self.experts.values())
            ]
        back = torch.cat([*itertools.chain(*zip(*made, strict=True))])  # rank by rank
        return exchange_rows(comm, back, incoming, outgoing)


def exchange_rows(comm, rows, outgoing: list[int], incoming: list[int]) -> torch.Tensor:
    """Send `outgoing[r]` rows to each rank r, in order; return the `incoming` ones.

    Backward is the reverse all-to-all, also where rows need no gradient.
    """
    needed = torch.empty(0, requires_grad=True)  # or autograd would skip some ranks
    return _Exchange.apply(comm, rows, outgoing, incoming, needed)


def _exchange(comm, rows, outgoing, incoming):
    pieces = rows.contiguous().split(outgoing)
    return torch.cat(pairwise_all_to_all(comm, pieces, lengths=incoming))


class _Exchange(torch.autograd.Function):
    @staticmethod
    def forward(ctx, comm, rows, outgoing, incoming, needed):
        ctx.comm, ctx.sizes = comm, (incoming, outgoing)
        return _exchange(comm, rows, outgoing, incoming)

    @staticmethod
    def backward(ctx, gradient):
        return None, exchange_rows(ctx.comm, gradient, *ctx.sizes), None, None, None


class StartedExchange:
    """An `exchange_rows` in progress; `wait()` returns the rows.

    Backward overlaps, too: autograd runs what came last first, so the reverse
    all-to-all of gradients starts where forward waited, and ends where it started.
    """

    def __init__(self, comm, rows, outgoing: list[int], incoming: list[int]):
        self.comm, self.sizes = comm, (outgoing, incoming)
        self.request = None  # of forward, then of backward
        needed = torch.empty(0, requires_grad=True)
        self._link = _Start.apply(self, rows, needed)

    def wait(self) -> torch.Tensor:
        """Wait until all rows have arrived; return them."""
        return _Wait.apply(self, self._link)

    def start(self, rows, outgoing, incoming) -> None:
        """Start an all-to-all in the background."""
        self.request = self.comm.start(_exchange, rows.detach(), outgoing, incoming)


class _Start(torch.autograd.Function):
    @staticmethod
    def forward(ctx, exchange, rows, needed):
        ctx.exchange = exchange
        exchange.start(rows, *exchange.sizes)
        return rows.new_empty(0)

    @staticmethod
    @once_differentiable
    def backward(ctx, _):
        return None, ctx.exchange.request.wait(), None


class _Wait(torch.autograd.Function):
    @staticmethod
    def forward(ctx, exchange, link):
        ctx.exchange = exchange
        return exchange.request.wait()

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        ctx.exchange.start(gradient, *reversed(ctx.exchange.sizes))
        return None, gradient.new_empty(0)


def _check(counts, top_k, factor):
    total, n = sum(counts), len(counts)
    if not all(counts):
        raise InvalidArgument(
            f"{total} experts for {n} ranks, and none on rank {counts.index(0)}."
        )
    if type(top_k) is not int or not 1 <= top_k <= total:
        raise InvalidArgument(f"top_k is 1 to {total}, of {total} experts: {top_k!r}.")
    if factor is not None and not 0 < factor < math.inf:
        raise InvalidArgument(f"capacity_factor is above 0, or None: {factor!r}.")
