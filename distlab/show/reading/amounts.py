"""Amounts that pictures compare: validation, selection, formatting."""

from distlab.errors import InvalidArgument
from distlab.show.canvas.scale import readable_number
from distlab.show.canvas.text import literal
from distlab.show.reading.rounds import selected
from distlab.units import readable_bytes, readable_seconds

__all__ = ["amount_of", "checked_amount", "checked_number", "shown", "times"]

# Far beyond any measurement, and far from the overflow of floats.
_SMALLEST, _LARGEST = 1e-60, 1e60


def checked_number(value, what: str, example: str) -> float:
    """Return a finite number as a float.

    what: the argument that it came in. example: a call that works. Both are for the
    message.

    Raises: InvalidArgument for anything else.
    """
    number = _as_float(value)
    if number is None or (number and not _SMALLEST < abs(number) < _LARGEST):
        raise InvalidArgument(
            f"{what} is a number, and got {literal(repr(value), 60)}. "
            f"For example: {example}"
        )
    return number


def checked_amount(value, what: str, example: str) -> float:
    """Return a number that is not below zero as a float.

    Raises: InvalidArgument for anything else; see `checked_number`.
    """
    number = checked_number(value, what, example)
    if number < 0:
        raise InvalidArgument(
            f"{what} is a number from zero up, and got {value!r}. "
            f"For example: {example}"
        )
    return number


def amount_of(number: float, unit: str) -> str:
    """Return a number with its unit; "B" and "s" get prefixes, such as "3 MB"."""
    if unit == "B":
        return readable_bytes(number)
    if unit == "s" and number > 0:
        return readable_seconds(number)
    return f"{readable_number(number)} {unit}".rstrip()


def times(ratio: float) -> str:
    """Return a ratio with three digits, as "1.04 x"."""
    rounded = float(f"{ratio:.3g}")
    short = f"{rounded:#.3g}" if 0.01 <= rounded < 100 else readable_number(rounded)
    return f"{short} x"


def shown(amounts: list[float], most: int) -> tuple[list[int], list[int]]:
    """Return indices of the at most `most` amounts to show, and of those left out.

    The first and the last are shown, and always the largest.
    """
    places, hidden = selected(list(range(len(amounts))), most)
    largest = max(places + hidden, key=amounts.__getitem__)
    if largest in hidden:
        hidden = sorted([*hidden, places[-2]])
        hidden.remove(largest)
        places = [*places[:-2], largest, places[-1]]
    return places, hidden


def _as_float(value):
    """Return a number as a float, or None if it is not a number."""
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        return None
    try:
        return float(value)
    except (ArithmeticError, RuntimeError, TypeError, ValueError):
        return None
