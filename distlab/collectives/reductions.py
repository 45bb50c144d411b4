"""Reductions of two tensors to one: sum, maximum, minimum, product and average.

A reduction has three parts. `check` refuses a tensor that it cannot work on, before any
message is sent. `combine` combines a tensor with one that arrived from another rank.
`finish` is called once on a tensor that has every rank's contribution.

Any object with these three can be an `op`. The algorithms combine in different orders,
so it must be associative and commutative, up to rounding.
"""

from distlab.errors import ExtraMissing, InvalidArgument

with ExtraMissing.named("distlab.collectives"):
    import numpy as np

__all__ = ["AVERAGE", "MAX", "MIN", "PRODUCT", "SUM", "Reduction"]


class Reduction:
    """Base of the reductions, and the sum itself.

    target, arrived: tensors or arrays of one shape and type.
    """

    name = "SUM"

    def __repr__(self):
        return self.name

    def check(self, tensor) -> None:
        """Refuse a tensor that this reduction is not defined for.

        Raises: InvalidArgument.
        """

    def combine(self, target, arrived) -> None:
        """Combine `arrived` into `target`, in place."""
        target += arrived

    def finish(self, target, world_size: int) -> None:
        """Turn `target`, which has all contributions, into the result, in place."""


class _Average(Reduction):
    """The average: a sum, divided at the end, which rounds once more, not n times."""

    name = "AVERAGE"

    def check(self, tensor):
        if not _is_inexact(tensor):
            raise InvalidArgument(
                f"the average of {str(tensor.dtype).removeprefix('torch.')} numbers is "
                "not one of them. Take SUM, or give it floating-point numbers."
            )

    def finish(self, target, world_size):
        target /= world_size


class _Product(Reduction):
    name = "PRODUCT"

    def combine(self, target, arrived):
        target *= arrived


class _Max(Reduction):
    name = "MAX"

    def combine(self, target, arrived):
        _library_of(target).maximum(target, arrived, out=target)


class _Min(Reduction):
    name = "MIN"

    def combine(self, target, arrived):
        _library_of(target).minimum(target, arrived, out=target)


def _library_of(tensor):
    """Return numpy or torch, whichever made the tensor."""
    if isinstance(tensor, np.ndarray):
        return np
    import torch  # here, because an array does not need it

    return torch


def _is_inexact(tensor):
    if isinstance(tensor, np.ndarray):
        return tensor.dtype.kind in "fc"
    return tensor.dtype.is_floating_point or tensor.dtype.is_complex


SUM = Reduction()
AVERAGE = _Average()
PRODUCT = _Product()
MAX = _Max()
MIN = _Min()
