"""Buckets: gradients that are reduced together, as views of one flat buffer.

    parameters    w1  b1  w2  b2  w3  b3        as they are registered
    buckets      [b3 w3] [b2 w2 b1] [w1]        the last registered come first

Source: Li et al., "PyTorch Distributed" (2020), section 4.2.
"""

import torch
from torch import nn

from distlab.errors import InvalidArgument
from distlab.units import MiB

__all__ = ["BUCKET_BYTES", "FIRST_BUCKET_BYTES", "Bucket", "grouped", "in_buckets"]

FIRST_BUCKET_BYTES, BUCKET_BYTES = 1 * MiB, 25 * MiB  # PyTorch's defaults


class Bucket:
    """Parameters of one type, and a buffer with room for their gradients.

    Its methods `parameters`, `buffer` and `gradients` are those of PyTorch's
    GradBucket, so that a communication hook works on both.

    names: of its parameters, for errors. missing: those whose gradient of this step has
    not been computed yet.
    """

    def __init__(self, parameters: list[nn.Parameter]):
        self._parameters = parameters
        self.missing, self.names = set(parameters), {}
        counts = [parameter.numel() for parameter in parameters]
        self._buffer = parameters[0].new_empty(sum(counts)).detach()
        pieces = zip(self._buffer.split(counts), parameters, strict=True)
        self._views = [piece.view_as(parameter) for piece, parameter in pieces]

    def parameters(self) -> list[nn.Parameter]:
        """Return the parameters in the order of their gradients in the buffer."""
        return self._parameters

    def buffer(self) -> torch.Tensor:
        """Return all gradients, flat."""
        return self._buffer

    def gradients(self) -> list[torch.Tensor]:
        """Return a view of the buffer for each parameter, in its shape."""
        return self._views

    @property
    def nbytes(self) -> int:
        """The bytes of the buffer."""
        return self._buffer.nbytes

    def take_in(self) -> None:
        """Copy the gradients in; zeros for a parameter that has none."""
        for parameter, view in zip(self._parameters, self._views, strict=True):
            if parameter.grad is None:
                view.zero_()
            elif parameter.grad is not view:
                view.copy_(parameter.grad)

    def hand_out(self) -> None:
        """Make each parameter's gradient a view of the buffer.

        From then on backward writes into the buffer, and `take_in` copies nothing.
        """
        for parameter, view in zip(self._parameters, self._views, strict=True):
            parameter.grad = view


def in_buckets(
    parameters: list[nn.Parameter], first_bytes: int, bucket_bytes: int
) -> list[Bucket]:
    """Return the buckets of these parameters, which are in order of registration.

    Raises: InvalidArgument for a limit that is not above 0.
    """
    named = [("", parameter) for parameter in parameters]
    groups = grouped(named, first_bytes, bucket_bytes)
    return [Bucket([parameter for _, parameter in group]) for group in groups]


def grouped(named: list[tuple], first_bytes: int, group_bytes: int) -> list[list]:
    """Return (name, parameter) in groups of one type, from the last to the first.

    A group is full once it has reached its limit, `first_bytes` for the first of a type
    and `group_bytes` for the others. Groups are in the order in which backward ends
    them, if gradients come from the last registered parameter to the first.

    Raises: InvalidArgument for a limit that is not above 0.
    """
    for limit in (first_bytes, group_bytes):
        if not limit > 0:
            raise InvalidArgument(f"a limit in bytes is above 0, and got {limit!r}.")
    groups, last, room = [], {}, {}  # of each type its last group, and the room in it
    for place, (name, parameter) in enumerate(reversed(named)):
        dtype = parameter.dtype
        if room.get(dtype, 0) <= 0:
            room[dtype] = group_bytes if dtype in last else first_bytes
            last[dtype] = []
            groups.append(last[dtype])
        last[dtype].append((place, name, parameter))
        room[dtype] -= parameter.nbytes
    groups.sort(key=lambda group: group[-1][0])
    return [[(name, p) for _, name, p in group] for group in groups]
