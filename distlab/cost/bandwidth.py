"""algbw and busbw: a collective's rate by itself, and relative to its links.

    algbw = S / t
    busbw = algbw * factor      the rate that an ideal algorithm would need on each link

The factor makes measurements on different numbers of ranks comparable with each other
and with a link's rate: 2(n-1)/n for an all-reduce, (n-1)/n for reduce-scatter,
all-gather, gather, scatter and all-to-all, 1 for broadcast and reduce. S is the whole
tensor: for an all-gather the list that every rank ends with.

The factor counts the bytes that the busiest rank must send as long as ranks do the
adding. Where switches add (NVLink SHARP) a rank sends less, and busbw can be above the
rate of its link.

Source: NVIDIA, nccl-tests, doc/PERFORMANCE.md.
"""

import math

from distlab.errors import InvalidArgument

__all__ = ["algbw", "busbw"]

_ONE_WAY = ("all_gather", "all_to_all", "gather", "reduce_scatter", "scatter")
_FACTORS = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "broadcast": lambda n: 1,
    "reduce": lambda n: 1,
    **dict.fromkeys(_ONE_WAY, lambda n: (n - 1) / n),
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
    tensor_bytes: S, the whole tensor.

    Raises: InvalidArgument for a name that has no busbw, or a time of 0 or below.
    """
    if collective not in _FACTORS:
        raise InvalidArgument(
            f"there is no busbw of {collective!r}, but of {', '.join(_FACTORS)}."
        )
    _check_seconds(seconds)
    return algbw(tensor_bytes, seconds) * _FACTORS[collective](world_size)


def _check_seconds(seconds):
    if not (seconds > 0 and math.isfinite(seconds)):
        raise InvalidArgument(f"a time above 0 is needed, and got {seconds!r}.")
