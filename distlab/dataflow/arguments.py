"""Limits of arguments: whole numbers in a range, and no workers inside a worker."""

import math

from distlab.errors import InvalidArgument, NestedWorld
from distlab.processes import inside

__all__ = ["check_limits"]

_LIMITS = {
    "workers": (1, 64),
    "reducers": (1, 512),
    "memory_bytes": (2**16, math.inf),
    "skip_bad_records": (0, math.inf),
    "split_bytes": (1, math.inf),
}


def check_limits(what: str, **given: int) -> None:
    """Check that each argument is a whole number in range, outside of any worker.

    what: the call being checked, as the error describes it.

    Raises: InvalidArgument, NestedWorld.
    """
    if inside() is not None:
        raise NestedWorld(
            f"{what} inside a worker or rank, which cannot have workers of its own: "
            "return to the notebook and do it there."
        )
    for name, value in given.items():
        least, most = _LIMITS[name]
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole or not least <= value <= most:
            to = f"from {least} to {most}"
            limit = to if most < math.inf else f"of at least {least:,}"
            raise InvalidArgument(
                f"{name} is a whole number {limit}, and got {value!r}."
            )
