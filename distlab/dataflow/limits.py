"""What may be asked for: whole numbers within limits, and by nobody inside a worker."""

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
    """Refuse what is no whole number within its limits, and workers inside a worker.

    what: what is being started.

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
