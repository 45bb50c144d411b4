"""`histogram`: counts of each value, one row for each series, on one axis.

gradient       ▁▂▅█▅▂▁        8,970 values, 8,970 different
after top-k    ▁  |  ▁        8,970 values, 91 different, 8,880 zeros
"""

import math
from collections import Counter

from distlab.errors import InvalidArgument
from distlab.show.canvas.canvas import (
    MARGIN,
    Canvas,
    is_narrow,
    page_width,
    shapes,
    strokes,
    write,
)
from distlab.show.canvas.picture import Picture
from distlab.show.canvas.scale import Ruler, Scale, readable_number
from distlab.show.canvas.text import fitted, literal, width_of
from distlab.show.canvas.theme import MUTED, rank_color
from distlab.show.reading.alt_text import plural

__all__ = ["histogram"]

_NAME, _SIZE, _WIDEST_NAME = 8.5, 8.25, 2.0
_PITCH, _HEAD, _FOOT = 0.8, 0.3, 0.36
_HIGH, _WIDEST_BAR = 0.62, 0.5
_BINS, _INTEGERS = 61, 300
_LARGEST = 1e60  # far from the overflow of floats


def histogram(series, *, x_label: str, title: str = "", log_y: bool = False) -> Picture:
    """Draw how often values occur, each series in a row of its own.

    If all values are integers, such as ages, each integer has a bar of its own, up to a
    range of 600; beyond that a bar stands for a whole number of them. Other values are
    counted in bins, of which one is centred on 0.

    series: name -> numbers; up to 8. log_y: heights by the logarithm of the count, so
    that one value that is frequent hides no others.

    Raises: InvalidArgument for anything else, and for a number that is not finite.
    """
    rows = _checked(series)
    width, whole = _binning([number for _, numbers in rows for number in numbers])
    counts = [Counter(math.floor(n / width + 0.5) for n in ns) for _, ns in rows]
    described = [_spread(numbers, whole) for _, numbers in rows]
    form = width, whole, log_y
    return Picture(
        lambda: _drawn(rows, counts, described, form, literal(x_label), title)
    )


def _drawn(rows, counts, described, form, x_label, title):
    """Return the canvas; form: the width of a bin, whether integers, and log_y."""
    width, whole, log_y = form
    names = [fitted(name, _WIDEST_NAME, _NAME) for name, _ in rows]
    left = MARGIN + max(width_of(name, _NAME) for name in names) + 0.2
    end = page_width() - MARGIN
    right = end - max(width_of(words, _SIZE) for words in described) - 0.2
    above = 0.36 if is_narrow() else 0.0  # names and words stand above the bars
    if above:
        left, right = MARGIN, end
    pitch = _PITCH + above
    ends = [width * (min(map(min, counts)) - 1), width * (max(map(max, counts)) + 1)]
    ruler = Ruler(Scale(ends, log=False), (left, right), readable_number, whole=whole)
    measure = "logarithm of the count" if log_y else "count"
    key = [(None, f"height: {measure}, relative to the row's highest")]
    if whole:
        held = "one integer" if width == 1 else f"{readable_number(width)} integers"
        key.append((None, f"each bar: {held}"))
    canvas = Canvas(_HEAD + pitch * len(rows) + _FOOT, title=title, key=key)
    page, top = canvas.page, canvas.top + _HEAD
    words = fitted(x_label, end - left, _SIZE)
    write(page, left, top - 0.16, words, size=_SIZE, color=MUTED)
    ruler.draw(page, top, top + pitch * len(rows))
    for row, count in enumerate(counts):
        foot = top + (row + 1) * pitch - 0.06
        middle = foot - _HIGH / 2
        name_y = words_y = middle
        if above:
            name_y, words_y = foot - _HIGH - 0.3, foot - _HIGH - 0.12
        write(page, MARGIN, name_y, names[row], size=_NAME)
        corners = _bars(count, width, foot, ruler, log_y, whole)
        shapes(page, corners, rank_color(row), gid=rows[row][0])
        strokes(page, [(left, foot, right, foot)])
        words = fitted(described[row], end - MARGIN, _SIZE)
        how = {"color": MUTED, "align": "left" if above else "right"}
        write(page, left if above else end, words_y, words, size=_SIZE, **how)
    said = [f"Histogram of {x_label}."]
    for (name, numbers), words, count in zip(rows, described, counts, strict=True):
        said.append(f"{name}: {words}{_shape(numbers, count, width)}.")
    return canvas.described(said)


def _binning(numbers):
    """Return the width of a bin, and True if all numbers are integers.

    Bins are centred on the multiples of their width.
    """
    low, high = min(numbers), max(numbers)
    if all(number == int(number) for number in numbers):
        # An odd width: as many integers left of a bin's middle as right of it.
        return int(high - low) // _INTEGERS // 2 * 2 + 1, True
    spread = high - low or abs(low)
    return max(spread, 1e-290) / _BINS, False


def _bars(count, width, foot, ruler, log_y, gaps):
    """Return the corners of each bar, and one outline for bars that touch.

    Drawn one by one, bars narrower than a pixel leave pale stripes between them.
    """
    heights = {k: math.log1p(c) if log_y else c for k, c in count.items()}
    highest, corners = max(heights.values()), []
    pitch = ruler.inch(width) - ruler.inch(0)
    half = 0.4 * pitch if gaps and pitch > 0.1 else 0.5 * pitch
    half = min(half, _WIDEST_BAR / 2)
    for k in sorted(heights):
        x, y = ruler.inch(k * width), foot - _HIGH * heights[k] / highest
        bar = [(x - half, foot), (x - half, y), (x + half, y), (x + half, foot)]
        if k - 1 in heights and half == 0.5 * pitch:
            corners[-1][-1:] = bar[1:]
        else:
            corners.append(bar)
    return corners


def _spread(numbers, whole):
    words = plural(len(numbers), "value")
    if whole:
        mean, most = math.fsum(numbers) / len(numbers), readable_number(max(numbers))
        return f"{words}, mean {readable_number(mean)}, at most {most}"
    zeros = numbers.count(0)
    words += f", {len(set(numbers)):,} different"
    return f"{words}, {zeros:,} zeros" if zeros else words


def _shape(numbers, count, width):
    """Return the values' range and the tallest bar in words."""
    ((mode, times),) = count.most_common(1)
    places = min(numbers), max(numbers), mode * width
    low, high, where = map(readable_number, places)
    where = where if width == 1 else f"about {where}"
    return f", from {low} to {high}, most often {where} ({plural(times, 'time')})"


def _checked(series):
    """Return pairs of a name and floats.

    Raises: InvalidArgument.
    """
    try:
        rows = [
            # Only numbers can be added to one: "12" is two digits, and refused.
            (literal(name), [float(number + 0.0) for number in _listed(numbers)])
            for name, numbers in series.items()
        ]
    except (ArithmeticError, AttributeError, TypeError, ValueError):
        rows = []
    # The comparison refuses NaN, too.
    fine = all(n and all(abs(x) < _LARGEST for x in n) for _, n in rows)
    if not 0 < len(rows) <= 8 or not fine:
        raise InvalidArgument(
            "series is a dict from a name to finite numbers, at most 8. For example: "
            'histogram({"gradient": model.weight.grad.flatten()}, x_label="element")'
        )
    return rows


def _listed(numbers):
    """Return the elements of a tensor or array at once, which is 100 times faster."""
    return numbers.tolist() if hasattr(numbers, "tolist") else numbers
