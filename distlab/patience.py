"""The limits after which distlab gives up, all multiplied by DISTLAB_PATIENCE.

A start, a call, a server's answer, a cell or a check that takes longer than its limit
is taken for one that never ends. On a busy machine, or beside other tests, all takes
longer: DISTLAB_PATIENCE=3 in the environment makes each limit three times as long. It
is read when a limit is needed, and processes inherit it.

What a protocol or a lesson measures is no such limit: heartbeats, elections, what a
client waits for an answer, how long a checker searches.
"""

import math
import os

from distlab.errors import InvalidArgument

__all__ = ["limit_in_words", "more_patience", "patience"]

_NAME = "DISTLAB_PATIENCE"


def patience(seconds: float) -> float:
    """Return how long to wait for what should take `seconds` at most.

    Raises: InvalidArgument if DISTLAB_PATIENCE is no finite number above 0.
    """
    return seconds * _factor()


def limit_in_words(seconds: float, name: str = "") -> str:
    """Return what `patience(seconds)` is, and what of: "6 s (timeout_s=2, ...)".

    name: of the argument or option whose value is `seconds`, if there is one.
    """
    why = [f"{name}={seconds:g}"] if name else []
    why = ", ".join([*why, f"{_NAME}={_factor():g}"])
    return f"{patience(seconds):g} s" + f" ({why})" * (_factor() != 1)


def more_patience() -> str:
    """Return how to lengthen a limit that no argument sets, as a sentence's words."""
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
