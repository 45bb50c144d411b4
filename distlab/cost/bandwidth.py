"""algbw and busbw: how fast a collective was, by itself and for the links it had.

    algbw = S / t
    busbw = algbw * factor      the rate that an ideal algorithm would need on each link

The factor makes measurements on different numbers of ranks comparable with each other
and with a link's rate: 2(n-1)/n for an all-reduce, (n-1)/n for reduce-scatter,
all-gather, gather, scatter and all-to-all, 1 for broadcast and reduce.

NCCL-tests takes as S of the collectives with (n-1)/n the whole of all ranks' tensors.
In `cost` S is one rank's tensor, n times smaller in all of them but reduce-scatter.
busbw is the same in both: the bytes that the busiest rank must move, per second.

Source: NVIDIA, nccl-tests, doc/PERFORMANCE.md.
"""

import math

from distlab.cost import bounds
from distlab.errors import InvalidArgument

__all__ = ["algbw", "busbw"]

_BOUNDS = {
    "all_gather": bounds.all_gather_bound_bytes,
    "all_reduce": bounds.all_reduce_bound_bytes,
    "all_to_all": bounds.all_to_all_bound_bytes,
    "broadcast": bounds.broadcast_bound_bytes,
    "gather": bounds.gather_bound_bytes,
    "reduce": bounds.reduce_bound_bytes,
    "reduce_scatter": bounds.reduce_scatter_bound_bytes,
    "scatter": bounds.scatter_bound_bytes,
}


def algbw(tensor_bytes: int, seconds: float) -> float:
    """Return S / t in bytes per second.

    Raises: InvalidArgument unless the time is above 0.
    """
    _check_seconds(seconds)
    return tensor_bytes / seconds


def busbw(collective: str, world_size: int, tensor_bytes: int, seconds: float) -> float:
    """Return the bytes per second of the busiest rank, had the algorithm been ideal.

    collective: its name, such as "all_reduce".
    tensor_bytes: S as everywhere in `cost`, one rank's tensor.

    Raises: InvalidArgument for a name that has no busbw, or a time of 0 or below.
    """
    if collective not in _BOUNDS:
        raise InvalidArgument(
            f"there is no busbw of {collective!r}, but of {', '.join(_BOUNDS)}."
        )
    _check_seconds(seconds)
    return _BOUNDS[collective](world_size, tensor_bytes) / seconds


def _check_seconds(seconds):
    if not (seconds > 0 and math.isfinite(seconds)):
        raise InvalidArgument(f"a time above 0 is needed, and got {seconds!r}.")
