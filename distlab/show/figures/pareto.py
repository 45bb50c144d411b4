"""`pareto`: plans by two costs, and the front of those that no other beats in both.

days │○   ·
     │ └─○    ·            ○ on the front, with its name
     │   └──○   · ·        · beaten in both by another
     └───────────────── cost
"""

from itertools import pairwise

from distlab.errors import InvalidArgument
from distlab.show.canvas.canvas import (
    MARGIN,
    Canvas,
    inside,
    is_narrow,
    page_width,
    points,
    strokes,
    underlay,
    write,
)
from distlab.show.canvas.picture import Picture
from distlab.show.canvas.scale import Ruler, Scale, readable_number
from distlab.show.canvas.text import fitted, literal, width_of
from distlab.show.canvas.theme import GRID, INK, MUTED, rank_color
from distlab.show.reading.alt_text import plural
from distlab.show.reading.amounts import checked_number

__all__ = ["pareto"]

_TICK, _NAME, _ROW = 8.25, 8.5, 0.2
_HEIGHT, _HEAD, _FOOT, _MOST = 3.3, 0.42, 0.62, 2000
_EXAMPLE = 'pareto({"1,024 GPUs": (3.1e6, 90)}, x_label="cost, $", y_label="days")'


def pareto(options, *, x_label: str, y_label: str, title: str = "") -> Picture:
    """Draw options by two numbers, both better if smaller, and their front.

    options: name -> (x, y), both above 0; the axes are logarithmic.

    Raises: InvalidArgument naming the option that cannot be drawn.
    """
    if not hasattr(options, "items") or not 1 <= len(options) <= _MOST:
        raise InvalidArgument(
            f"options is a dict of 1 to {_MOST} options. For example: {_EXAMPLE}"
        )
    spots = {}
    for name, pair in options.items():
        what = f"a number of options[{name!r}]"
        try:
            x, y = pair
        except (TypeError, ValueError):
            raise InvalidArgument(
                f"options[{name!r}] is (x, y). For example: {_EXAMPLE}"
            ) from None
        spot = checked_number(x, what, _EXAMPLE), checked_number(y, what, _EXAMPLE)
        if min(spot) <= 0:
            raise InvalidArgument(f"{what} is above 0, and got {min(spot)!r}.")
        spots[literal(str(name), 60)] = spot
    return Picture(lambda: _drawn(spots, title, literal(x_label), literal(y_label)))


def _front(spots):
    """Return the names of those that no other beats in both, from left to right."""
    found, lowest = [], float("inf")
    for name, (_, y) in sorted(spots.items(), key=lambda item: item[1]):
        if y < lowest:
            found.append(name)
            lowest = y
    return found


def _drawn(spots, title, x_label, y_label):
    front = _front(spots)
    listed = _ROW * len(front) * is_narrow()  # names have no room beside their points
    key = [(None, "circles: the front; dots: another is better in both")]
    canvas = Canvas(_HEAD + _HEIGHT + _FOOT + listed, title=title, key=key)
    page, top = canvas.page, canvas.top + _HEAD
    bottom = top + _HEIGHT
    across, up = (Scale([s[k] for s in spots.values()], log=True) for k in (0, 1))
    ticks = [(readable_number(tick), up.share(tick)) for tick in up.ticks(5)]
    left = MARGIN + 0.1 + max(width_of(words, _TICK) for words, _ in ticks)
    ruler = Ruler(across, (left, page_width() - MARGIN - 0.1), readable_number)
    ruler.draw(page, top, bottom)
    write(page, MARGIN, top - 0.22, y_label, size=_TICK, color=MUTED)
    half = width_of(x_label, _TICK) / 2
    how = {"size": _TICK, "color": MUTED, "align": "center"}
    write(page, inside((left + ruler.right) / 2, half), bottom + 0.4, x_label, **how)
    for words, share in ticks:
        y = bottom - share * _HEIGHT
        strokes(page, [(left, y, ruler.right, y)], GRID, zorder=0)
        write(page, left - 0.08, y, words, size=_TICK, color=MUTED, align="right")
    at = {
        name: (ruler.inch(x), bottom - up.share(y) * _HEIGHT)
        for name, (x, y) in spots.items()
    }
    rest = [at[name] for name in spots if name not in front]
    if rest:
        points(page, *zip(*rest, strict=True), 0, size=3, marker="o", color=MUTED)
    _draw_front(page, front, at, ruler.right)
    for row, name in enumerate(front if is_narrow() else ()):
        y = bottom + _FOOT + _ROW * row
        words = fitted(f"{row + 1}  {name}", page_width() - 2 * MARGIN, _NAME)
        write(page, MARGIN, y, words, size=_NAME, color=INK)
    said = [f"{y_label} against {x_label}: {plural(len(spots), 'option')}."]
    said += [
        f"On the front: {name}, {readable_number(spots[name][0])} and "
        f"{readable_number(spots[name][1])}."
        for name in front
    ]
    return canvas.described(said)


def _draw_front(page, front, at, right):
    """Draw the front as a staircase, a name or number above each point."""
    steps = []
    for one, two in pairwise(front):
        (x0, y0), (x1, y1) = at[one], at[two]
        steps += [(x0, y0, x1, y0), (x1, y0, x1, y1)]
    if steps:
        strokes(page, steps, rank_color(0), width=1.4, zorder=2)
    points(
        page,
        *zip(*(at[name] for name in front), strict=True),
        0,
        marker="o",
        gid="front",
    )
    lowest = None
    for number, name in enumerate(front, start=1):
        x, y = at[name]
        words = str(number) if is_narrow() else fitted(name, right - x - 0.1, _NAME)
        if len(words) < min(4, len(name)) and not is_narrow():
            continue  # no room at the right edge
        y = y - 0.14
        if lowest is None or abs(y - lowest) > 0.17 or is_narrow():
            underlay(write(page, x + 0.08, y, words, size=_NAME))
            lowest = y
