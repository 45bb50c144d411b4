"""`tradeoff`: latency of each store against the calls it answers in a partition.

100 % │▲ any replica: reads
      │■ primary, read any: reads
──────┼──────────────────────────────────────────
  0 % │              ■ primary, read any: writes
      │                           ● majority: reads
      └──────────────────────────────────────────  latency without a partition
"""

from collections import defaultdict

from distlab.errors import InvalidArgument
from distlab.show.canvas.canvas import (
    MARGIN,
    Canvas,
    is_narrow,
    page_width,
    points,
    strokes,
    underlay,
    write,
)
from distlab.show.canvas.picture import Picture
from distlab.show.canvas.scale import Ruler, Scale
from distlab.show.canvas.text import fitted, literal, width_of
from distlab.show.canvas.theme import MUTED
from distlab.show.reading.amounts import checked_amount
from distlab.units import readable_seconds

__all__ = ["tradeoff"]

_SIZE, _SMALL, _PITCH, _APART = 10.5, 9.5, 0.42, 0.22
_HEAD, _FOOT, _LEFT = 0.35, 0.62, 0.95
_WIDEST, _MOST, _ABOVE = 4.9, 16, 0.28
_UNDER = "median latency without a partition"
_EXAMPLE = 'tradeoff({"majority": (0.04, 0.0, "linearizable")})'


def tradeoff(stores, *, title: str = "") -> Picture:
    """Draw a point for each store, in bands of those that answer equally much.

    stores: name -> (seconds that a call takes without a partition, share of calls that
    the minority answers in one, name of a model, such as "linearizable"), or an object
    that returns such a dict from `tradeoff()`; a survey has reads and writes apart.

    Raises: InvalidArgument naming the store that cannot be drawn.
    """
    rows = _checked(stores.tradeoff() if hasattr(stores, "tradeoff") else stores)
    return Picture(lambda: _drawn(rows, title))


def _drawn(rows, title):
    groups = list(dict.fromkeys(group for *_, group in rows))
    bands = defaultdict(list)
    for row in sorted(rows, key=lambda row: row[1]):
        bands[round(row[2], 2)].append(row)
    pitch = _PITCH + (_ABOVE if is_narrow() else 0)
    tall = sum(pitch * len(some) + _APART for some in bands.values())
    canvas = Canvas(_HEAD + tall + _FOOT, title=title)
    page, top = canvas.page, canvas.top + _HEAD
    labels = [width_of(row[0], _SIZE, True) for row in rows]
    labels += [width_of(group, _SMALL) for group in groups]
    ends = (
        MARGIN + _LEFT + 0.15,
        page_width() - MARGIN - min(max(labels), _WIDEST) - 0.3,
    )
    if is_narrow():
        ends = MARGIN + 0.65, page_width() - MARGIN - 0.1
    scale = Scale([0.0, *(row[1] for row in rows)], log=False, from_zero=True)
    ruler = Ruler(scale, ends, lambda s: readable_seconds(s) if s else "0")
    ruler.draw(page, top, top + tall)
    heading = {"size": _SMALL, "color": MUTED}
    write(page, MARGIN, top - 0.2, "the minority answers", **heading)
    left = MARGIN if is_narrow() else ends[0]
    write(page, left, top + tall + 0.4, _UNDER, **heading)
    _draw_bands(page, top, ruler, bands, groups, pitch)
    said = ["Latency without a partition, and calls that the minority answers."]
    said += [
        f"{name}: {readable_seconds(latency_s) if latency_s else '0 s'}, {share:.0%}, "
        f"{group}."
        for name, latency_s, share, group in rows
    ]
    return canvas.described(said)


def _draw_bands(page, y, ruler, bands, groups, pitch):
    """Draw the bands from `y` down, and in each a row for each of its stores."""
    for share in sorted(bands, reverse=True):
        strokes(page, [(MARGIN, y, page_width() - MARGIN, y)])
        middle = y + (pitch * len(bands[share]) + _APART) / 2
        write(page, MARGIN, middle, f"{share:.0%}", size=_SIZE + 2, bold=True)
        y += _APART / 2
        for name, latency_s, _, group in bands[share]:
            x, at = ruler.inch(latency_s), y + pitch - _PITCH / 2
            points(page, [x], [at], groups.index(group), size=10, gid="store")
            left, high, room = x + 0.17, at, _WIDEST
            if is_narrow():  # above the point, over the whole axis
                left, high = ruler.left, at - _ABOVE
                room = ruler.right - left
            short = fitted(name, room, _SIZE, bold=True)
            underlay(write(page, left, high - 0.08, short, size=_SIZE, bold=True))
            short = fitted(group, room, _SMALL)
            words = {"size": _SMALL, "color": MUTED}
            underlay(write(page, left, high + 0.1, short, **words))
            y += pitch
        y += _APART / 2


def _checked(stores):
    if not hasattr(stores, "items") or not 1 <= len(stores) <= _MOST:
        raise InvalidArgument(
            f"stores is a dict of 1 to {_MOST} stores by name, and got "
            f"{literal(repr(stores), 60)}. For example: {_EXAMPLE}"
        )
    rows = []
    for name, row in stores.items():
        try:
            latency_s, share, group = row
        except (TypeError, ValueError):
            raise InvalidArgument(
                f"stores[{name!r}] is (seconds, share, name of a model), and got "
                f"{literal(repr(row), 60)}. For example: {_EXAMPLE}"
            ) from None
        numbers = [
            checked_amount(number, f"a number of stores[{name!r}]", _EXAMPLE)
            for number in (latency_s, share)
        ]
        rows.append((literal(name, 60), *numbers, literal(group, 60)))
    return rows
