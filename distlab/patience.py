"""Time limits of distlab's own waits, all multiplied by DISTLAB_PATIENCE.

A start, a call, a server's response, a cell or a check that takes longer than its limit
is treated as one that never ends. On a busy machine, or while other tests run, all
takes longer: DISTLAB_PATIENCE=3 in the environment makes each limit three times as
long. It is read when a limit is needed, and processes inherit it.

Times that a protocol or a lesson measures are not scaled: heartbeats, elections, a
client's time-out, a checker's time to search.
"""

import math
import os

from distlab.errors import InvalidArgument

__all__ = ["limit_in_words", "more_patience", "patience"]

_NAME = "DISTLAB_PATIENCE"


def patience(seconds: float) -> float:
    """Return the limit, in seconds, of a wait that should take `seconds` at most.

    Raises: InvalidArgument if DISTLAB_PATIENCE is no finite number above 0.
    """
    return seconds * _factor()


def limit_in_words(seconds: float, name: str = "") -> str:
    """Return `patience(seconds)` with its factors: "6 s (timeout_s=2, ...)".

    name: the argument or option whose value is `seconds`, if there is one.
    """
    why = [f"{name}={seconds:g}"] if name else []
    why = ", ".join([*why, f"{_NAME}={_factor():g}"])
    return f"{patience(seconds):g} s" + f" ({why})" * (_factor() != 1)


def more_patience() -> str:
    """Return a clause that advises a longer limit, for limits that no argument sets."""
    more = f"{_NAME}={max(3, 3 * _factor()):g}"
    return f"If this machine is busy, give it longer: {more} in the environment"


def _factor():
    value = os.environ.get(_NAME, "1")
    try:
        factor = float(value)
    except ValueError:
        factor = math.nan
    if not 0 < factor < math.inf:
        raise InvalidArgument(
            f"the environment variable {_NAME} is {value!r}. It is a number above 0, "
            "by which the limits are multiplied after which distlab gives up: 3 on a "
            "busy machine, 1 if it is not set."
        )
    return factor
