"""Flat groups: parameters as views of one tensor, of which each rank owns one part.

    full     │ w1 │ b1 │ w2 │ b2 │ padding │
    parts    │  rank 0  │  rank 1  │  rank 2  │      equal, whatever the parameters are
    shard               ▲ on rank 1: the part that its optimizer steps

Cutting by position and not by parameter gives every rank the same work; a parameter may
lie on two ranks.

Source: Rajbhandari et al., "ZeRO: memory optimizations toward training trillion
parameter models" (2020); Zhao et al., "PyTorch FSDP" (2023), section 3.2.1.
"""

from collections.abc import Callable

import torch
from torch import nn

from distlab.collectives import AVERAGE, ring_reduce_scatter
from distlab.errors import InvalidArgument

__all__ = [
    "FlatGroup",
    "add_to_gradient",
    "all_gather_parts",
    "at_the_end_of_backward",
    "first_names",
    "mean_part",
]


class FlatGroup:
    """Parameters of one type, flat and padded to n equal parts.

    names, parameters: in their order in `full`. shard: this rank's part of it, as a
    parameter for an optimizer. missing: those without a gradient yet.

    Raises: InvalidArgument for parameters of several types, as a tensor has one.
    """

    def __init__(self, comm, named_parameters: list[tuple[str, nn.Parameter]]):
        self.comm = comm
        self.names = [name for name, _ in named_parameters]
        self.parameters = [parameter for _, parameter in named_parameters]
        self.shapes = [parameter.shape for parameter in self.parameters]
        self.numbers = sum(parameter.numel() for parameter in self.parameters)
        self.part = -(-self.numbers // comm.world_size)
        self.missing = set(self.parameters)
        first = self.parameters[0]
        other = [n for n, p in named_parameters if p.dtype != first.dtype]
        if other:
            raise InvalidArgument(
                f"{self.names[0]} is {first.dtype} and {other[0]} is not; parameters "
                "that are gathered together have one type."
            )
        self.full = first.new_zeros(self.part * comm.world_size).detach()
        for parameter, view in zip(self.parameters, self.views(self.full), strict=True):
            view.copy_(parameter.detach())

    def views(self, flat: torch.Tensor) -> list[torch.Tensor]:
        """Return a view of `flat` for each parameter, in its shape."""
        counts = [shape.numel() for shape in self.shapes]
        pieces = flat[: self.numbers].split(counts)
        return [p.view(shape) for p, shape in zip(pieces, self.shapes, strict=True)]

    def own(self, flat: torch.Tensor) -> torch.Tensor:
        """Return this rank's part of `flat`, a view."""
        start = self.comm.rank * self.part
        return flat[start : start + self.part]

    def names_in_shard(self) -> list[tuple[str, int]]:
        """Return (name, first index in it) of the parameters in this rank's part."""
        start, found, place = self.comm.rank * self.part, [], 0
        for name, shape in zip(self.names, self.shapes, strict=True):
            if place < start + self.part and place + shape.numel() > start:
                found.append((name, max(place - start, 0)))
            place += shape.numel()
        return found or [("padding", 0)]

    def flat_gradient(self) -> torch.Tensor:
        """Return all gradients in one new tensor, zeros for none; then drop them."""
        flat = torch.zeros_like(self.full)
        for parameter, view in zip(self.parameters, self.views(flat), strict=True):
            if parameter.grad is not None:
                view.copy_(parameter.grad)
                parameter.grad = None
        return flat


def first_names(module: nn.Module) -> dict[str, str]:
    """Return the first name of every parameter, by each name that it has."""
    first = {parameter: name for name, parameter in module.named_parameters()}
    every = module.named_parameters(remove_duplicate=False)
    return {name: first[parameter] for name, parameter in every}


def add_to_gradient(shard: nn.Parameter, arrived: torch.Tensor) -> None:
    """Store a mean gradient in a shard, or add it to that of earlier backwards."""
    if shard.grad is None:
        shard.grad = arrived
    else:
        shard.grad += arrived


def all_gather_parts(comm, flat: torch.Tensor) -> None:
    """Fill `flat`, of which every rank has its own part, around a ring; in place.

    Cost: n-1 rounds; every rank sends (n-1)/n of it.
    """
    n, rank = comm.world_size, comm.rank
    parts = flat.view(n, -1)
    for step in range(n - 1):
        comm.mark(f"all-gather, step {step + 1} of {n - 1}")
        outgoing, target = parts[(rank - step) % n], parts[(rank - step - 1) % n]
        comm.sendrecv(outgoing, target, dst=(rank + 1) % n, src=(rank - 1) % n)


def at_the_end_of_backward(call: Callable) -> None:
    """Schedule a call for the end of the current backward pass, from a hook."""
    torch.autograd.Variable._execution_engine.queue_callback(call)


def mean_part(comm, flat: torch.Tensor) -> torch.Tensor:
    """Return this rank's part of the mean of all ranks' tensors, in memory of its own.

    Cost: n-1 rounds; every rank sends (n-1)/n of the tensor, which is used up.
    """
    return ring_reduce_scatter(comm, flat, op=AVERAGE).clone()
