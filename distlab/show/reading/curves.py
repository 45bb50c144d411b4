"""Curves of `scaling`, named lists of (x, y): validation and text."""

import math

from distlab.errors import InvalidArgument
from distlab.show.canvas.scale import readable_number
from distlab.show.canvas.text import literal

__all__ = ["checked_curves", "ends_in_words", "ratios_in_words"]


def checked_curves(curves, which: str, *, log_x, log_y) -> dict[str, list]:
    """Return name -> [(x, y), ...] in order of x.

    which: the argument that the curves came in, for the message.

    Raises: InvalidArgument naming the first curve that cannot be drawn, and why.
    """
    if not hasattr(curves, "items"):
        kind = type(curves).__name__
        raise InvalidArgument(
            f"{which} is a dict from a name to (xs, ys), and got {kind}."
        )
    checked = {}
    for name, pair in curves.items():
        where = f"{which}[{name!r}]"
        try:
            xs, ys = ([float(number) for number in numbers] for numbers in pair)
            spots = sorted(zip(xs, ys, strict=True))
        except (TypeError, ValueError):
            raise InvalidArgument(
                f"{where} is two lists of numbers of the same length, (xs, ys)."
            )
        if not spots:
            raise InvalidArgument(f"{where} has no points.")
        for x, y in spots:
            if not (math.isfinite(x) and math.isfinite(y)):
                raise InvalidArgument(f"{where} has a point that is no number: {x, y}.")
            if (log_x and x <= 0) or (log_y and y <= 0):
                raise InvalidArgument(
                    f"{where} has the point {x, y}; a logarithmic axis has no place "
                    "for zero and less."
                )
        checked[str(name)] = spots
    return checked


def ends_in_words(curves, what: str) -> list[str]:
    """Return for each curve the sentence with its first and last value."""
    said = []
    for name, spots in curves.items():
        ends = [spots[0], spots[-1]][: len(spots)]
        values = [f"{readable_number(y)} at {readable_number(x)}" for x, y in ends]
        said.append(f"{literal(name)}, {what}: {' to '.join(values)}.")
    return said


def ratios_in_words(measured, predicted) -> list[str]:
    """Return the ratio of each curve's last measured point to its prediction."""
    said = []
    for name, spots in measured.items():
        x, y = spots[-1]
        foretold = dict(predicted.get(name, [])).get(x)
        if foretold:
            times = f"{y / foretold:.3g} times what was predicted"
            said.append(f"At {readable_number(x)}, {literal(name)} is {times}.")
    return said
