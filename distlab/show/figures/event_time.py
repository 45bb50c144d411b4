"""`event_time`: events as they arrive, their windows, and the watermark between them.

event time   [10, 20)        o    o ┌───── watermark
             [0, 10)    o  o   ┌────┘   x late
                      ────────────────▶ order of arrival
"""

from collections.abc import Sequence
from math import floor, isfinite

from distlab.errors import InvalidArgument
from distlab.show.canvas.canvas import (
    MARGIN,
    Canvas,
    bars,
    is_narrow,
    page_width,
    points,
    strokes,
    write,
)
from distlab.show.canvas.picture import Picture
from distlab.show.canvas.scale import readable_number
from distlab.show.canvas.text import width_of
from distlab.show.canvas.theme import MUTED, TRACK, WARNING, rank_color
from distlab.show.reading.alt_text import listed

__all__ = ["event_time"]

_SIZE, _HEAD, _FOOT, _BAND, _ON_TIME, _MARK = 8.25, 0.28, 0.3, 0.8, 0, 1


def event_time(
    events: Sequence[float],
    watermarks: Sequence[float],
    *,
    window_s: float,
    title: str = "",
) -> Picture:
    """Draw event times in the order of arrival, tumbling windows and a watermark.

    events: in seconds. watermarks: after each of them. An event is late if the
    watermark before it has reached the end of its window.

    Raises: InvalidArgument for no events, other numbers of them, or over 8 windows.
    """
    times = [*events, *watermarks]
    fits = events and len(events) == len(watermarks) and all(map(isfinite, times))
    if not fits or window_s <= 0 or max(events) - min(events) > 8 * window_s:
        raise InvalidArgument(
            "event_time draws finite event times, a watermark after each, and up to 8 "
            "windows. For example: event_time([1, 12, 3], [1, 12, 12], window_s=10)"
        )
    return Picture(lambda: _drawn(events, watermarks, window_s, title))


def _drawn(events, watermarks, window_s, title):
    starts = range(floor(min(events) / window_s), floor(max(events) / window_s) + 1)
    key = [({"color": rank_color(_MARK)}, "watermark")]
    key += [(None, "circle: in time"), (None, "cross: late")]
    canvas = Canvas(_HEAD + _BAND * len(starts) + _FOOT, title=title, key=key)
    page, top = canvas.page, canvas.top + _HEAD
    bottom = top + _BAND * len(starts)
    names = [f"[{_s(k * window_s)}, {_s((k + 1) * window_s)})" for k in starts]
    left = MARGIN + max(width_of(name, _SIZE) for name in names) + 0.15
    pitch = (page_width() - MARGIN - left) / len(events)

    def height(time):
        low, high = starts[0] * window_s, (starts[-1] + 1) * window_s
        share = (min(max(time, low), high) - low) / (high - low)
        return bottom - share * (bottom - top)

    write(page, MARGIN, top - 0.14, "event time, s", color=MUTED)
    words = "arrival" if is_narrow() else "events in the order of arrival"
    write(page, page_width() - MARGIN, bottom + 0.15, words, color=MUTED, align="right")
    for number, name in enumerate(names):
        low = bottom - number * _BAND
        box = (left, low - _BAND + 0.02, page_width() - MARGIN, low - 0.02)
        bars(page, [box], TRACK, gid="window", zorder=0)
        write(page, MARGIN, low - _BAND / 2, name, size=_SIZE)
    spots = [(left + (k + 0.5) * pitch, height(t)) for k, t in enumerate(events)]
    _draw_watermark(page, left, pitch, [height(mark) for mark in watermarks])
    before = [float("-inf"), *watermarks[:-1]]
    pairs = zip(events, before, strict=True)
    late = [(time // window_s + 1) * window_s <= mark for time, mark in pairs]
    for is_late, marker, color in ((0, "o", rank_color(_ON_TIME)), (1, "X", WARNING)):
        own = [spot for spot, so in zip(spots, late, strict=True) if so == is_late]
        xs, ys = [x for x, _ in own], [y for _, y in own]
        gid = "late" if is_late else "event"
        points(page, xs, ys, 0, size=6, marker=marker, color=color, gid=gid)
    said = [f"Event times in order of arrival: {listed(map(_s, events), 40)}."]
    said.append(f"Watermark after each: {listed(map(_s, watermarks), 40)}.")
    which = [_s(time) for time, so in zip(events, late, strict=True) if so]
    return canvas.described([*said, f"Late: {listed(which, 40) or 'none'}."])


def _draw_watermark(page, left, pitch, heights):
    lines = []
    for k, y in enumerate(heights):
        x = left + (k + 0.5) * pitch
        end = x + (pitch if k + 1 < len(heights) else pitch / 2)
        lines.append((x, y, end, y))
        if k + 1 < len(heights):
            lines.append((end, y, end, heights[k + 1]))
    how = {"width": 1.6, "gid": "watermark", "zorder": 4}
    strokes(page, lines, rank_color(_MARK), **how)


def _s(time):
    return readable_number(time)
