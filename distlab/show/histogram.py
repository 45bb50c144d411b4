"""`histogram`: how often each value occurs, one row for each series, on one axis.

gradient       ▁▂▅█▅▂▁        8,970 values
after top-k    ▁  |  ▁           90 values that are not 0
"""

import math

from distlab.errors import InvalidArgument
from distlab.show.lettering import fitted, literal, width_of
from distlab.show.picture import Picture
from distlab.show.ruler import Ruler
from distlab.show.scale import Scale, readable_number
from distlab.show.sheet import MARGIN, PAGE_WIDTH, Sheet, bars, strokes, write
from distlab.show.theme import MUTED, rank_color

__all__ = ["histogram"]

_NAME, _SIZE, _WIDEST_NAME = 8.5, 8, 2.0
_PITCH, _HEAD, _FOOT = 0.8, 0.3, 0.36
_HIGH = 0.62  # inches of the tallest bar


def histogram(
    series, *, x_label: str, title: str = "", bins: int = 61, log_y: bool = False
) -> Picture:
    """Draw how often values occur, each series in a row of its own.

    series: name -> numbers; up to 8. bins: on the axis that all share. log_y: heights
    by the logarithm of the count, so that one value that is frequent hides no others.

    Raises: InvalidArgument for anything else, and for a number that is not finite.
    """
    counted = _checked(series)
    every = [number for numbers in counted.values() for number in numbers]
    low, high = min(every), max(every)
    if low == high:
        low, high = low - 0.5, high + 0.5
    names = {name: fitted(name, _WIDEST_NAME, _NAME) for name in counted}
    told = {name: _spread(numbers) for name, numbers in counted.items()}
    left = MARGIN + max(width_of(name, _NAME) for name in names.values()) + 0.2
    right = PAGE_WIDTH - MARGIN - max(width_of(t, _SIZE) for t in told.values()) - 0.2
    scale = Scale([low, high], log=False)
    ruler = Ruler(scale, (left, right), readable_number)
    key = [(None, "height: " + ("logarithm of the count" if log_y else "count"))]
    sheet = Sheet(_HEAD + _PITCH * len(counted) + _FOOT, title=title, key=key)
    page, top = sheet.page, sheet.top + _HEAD
    write(page, left, top - 0.16, literal(x_label), size=_SIZE, color=MUTED)
    ruler.draw(page, top, top + _PITCH * len(counted))
    for row, (name, numbers) in enumerate(counted.items()):
        foot = top + (row + 1) * _PITCH - 0.06
        write(page, MARGIN, foot - _HIGH / 2, names[name], size=_NAME)
        boxes = []
        for begin, end, height in _bins(numbers, low, high, bins, log_y):
            x, x_end = ruler.inch(begin), ruler.inch(end)
            boxes.append((x, foot - _HIGH * height, x_end, foot))
        bars(page, boxes, rank_color(row), gid=name)
        strokes(page, [(left, foot, right, foot)])
        end, middle = PAGE_WIDTH - MARGIN, foot - _HIGH / 2
        write(page, end, middle, told[name], size=_SIZE, color=MUTED, align="right")
    said = [f"{literal(title)}:"] if title else []
    said += [
        f"{name}: {told[name]}, from {min(numbers):.3g} to {max(numbers):.3g}."
        for name, numbers in counted.items()
    ]
    return Picture(sheet.figure, " ".join(said))


def _bins(numbers, low, high, bins, log_y):
    """Return (begin, end, height from 0 to 1) of each bin with a number in it."""
    counts, width = [0] * bins, (high - low) / bins
    for number in numbers:
        counts[min(bins - 1, int((number - low) / width))] += 1
    heights = [math.log1p(c) if log_y else c for c in counts]
    return [
        (low + k * width, low + (k + 1) * width, height / max(heights))
        for k, height in enumerate(heights)
        if height
    ]


def _spread(numbers):
    distinct, zeros = len(set(numbers)), sum(number == 0 for number in numbers)
    words = f"{len(numbers):,} values, {distinct:,} different"
    return f"{words}, {zeros / len(numbers):.1%} zeros" if zeros else words


def _checked(series):
    """Return name -> floats.

    Raises: InvalidArgument.
    """
    try:
        counted = {
            literal(str(name)): [float(number) for number in numbers]
            for name, numbers in series.items()
        }
    except (AttributeError, TypeError, ValueError):
        counted = {}
    fine = all(n and all(map(math.isfinite, n)) for n in counted.values())
    if not 0 < len(counted) <= 8 or not fine:
        raise InvalidArgument(
            "series is a dict from a name to finite numbers, at most 8. For example: "
            'histogram({"gradient": model.weight.grad.flatten()}, x_label="element")'
        )
    return counted
