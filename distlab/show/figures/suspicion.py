"""`suspicion`: phi over time, per rank, and its crossings of the threshold.

rank 1   ╱╲╱╲╱╲╱╲╱╲╱╲╱╲╱╲        - - - threshold
rank 2   ╱╲╱╲╱╲╱╲╱╱╱╱ suspected
"""

from itertools import pairwise

from distlab.errors import InvalidArgument
from distlab.show.canvas.canvas import MARGIN, Canvas, bars, page_width, strokes, write
from distlab.show.canvas.picture import Picture
from distlab.show.canvas.scale import Ruler, Scale, readable_number
from distlab.show.canvas.text import width_of
from distlab.show.canvas.theme import MUTED, WARNING, rank_color, tint

__all__ = ["suspicion"]

_HIGH, _PITCH, _HEAD, _FOOT, _NAME = 0.62, 0.8, 0.3, 0.36, 8.5
_SAMPLES = 1200


def suspicion(arrivals, detector, *, seconds: float, title: str = "") -> Picture:
    """Draw how phi rises between heartbeats, up to a little above the threshold.

    arrivals: rank -> arrival times of its heartbeats, in seconds; up to 8 ranks.
    detector: makes a new `PhiAccrual`, once for each rank.
    seconds: the end of the axis.

    Raises: InvalidArgument for no or too many ranks.
    """
    if not 0 < len(arrivals) <= 8:
        raise InvalidArgument(
            f"arrivals of 1 to 8 ranks are drawn, not {len(arrivals)}."
        )
    phis = {}
    for rank, times in arrivals.items():
        made = detector()
        phis[rank] = made.threshold, *_phis(made, times, seconds)
    return Picture(lambda: _drawn(phis, seconds, title))


def _drawn(phis, seconds, title):
    names = {rank: f"rank {rank}" for rank in phis}
    left = MARGIN + max(width_of(name, _NAME) for name in names.values()) + 0.35
    scale = Scale([0.0, seconds], log=False, from_zero=True)
    scale.high = seconds
    ruler = Ruler(scale, (left, page_width() - MARGIN - 0.1), readable_number)
    key = [({"color": tint(WARNING, 0.2)}, "suspected")]
    canvas = Canvas(_HEAD + _PITCH * len(phis) + _FOOT, title=title, key=key)
    page, top = canvas.page, canvas.top + _HEAD
    write(page, left, top - 0.14, "phi, over time in seconds", color=MUTED)
    ruler.draw(page, top, top + _PITCH * len(phis))
    described = []
    for number, (rank, (threshold, curve, suspected)) in enumerate(phis.items()):
        bottom = top + number * _PITCH + _HIGH + 0.1
        full = 1.25 * threshold
        heights = [(t, bottom - _HIGH * min(phi, full) / full) for t, phi in curve]
        lines = [
            (ruler.inch(a), y, ruler.inch(b), z) for (a, y), (b, z) in pairwise(heights)
        ]
        for begin, end in suspected:
            box = (ruler.inch(begin), bottom - _HIGH, ruler.inch(end), bottom)
            bars(page, [box], tint(WARNING, 0.2), gid="suspected")
        line = bottom - _HIGH / 1.25
        strokes(page, [(ruler.left, line, ruler.right, line)], WARNING, dashed=True)
        strokes(page, lines, rank_color(rank), width=1.1, gid="phi", zorder=4)
        write(page, MARGIN, bottom - _HIGH / 2, names[rank], size=_NAME)
        words = readable_number(threshold)
        write(page, ruler.left - 0.06, line, words, color=WARNING, align="right")
        when = ", ".join(f"{begin:.2f} s" for begin, _ in suspected[:5])
        described.append(
            f"{names[rank]} is {'suspected at ' + when if when else 'trusted'}."
        )
    return canvas.described(["Phi over time.", *described])


def _phis(detector, times, seconds):
    """Return [(second, phi)], and [(begin, end)] of the suspicions in seconds."""
    ticks = [seconds * k / _SAMPLES for k in range(_SAMPLES + 1)]
    moments = sorted([*((t, False) for t in ticks), *((t, True) for t in times)])
    curve, suspected, since = [], [], None
    for now_s, beats in moments:
        phi = detector.phi(now_s)
        if phi >= detector.threshold and since is None:
            since = now_s
        curve.append((now_s, phi))
        if beats:
            detector.beat(now_s)
            curve.append((now_s, detector.phi(now_s)))
            if since is not None:
                suspected.append((since, now_s))
                since = None
    if since is not None:
        suspected.append((since, seconds))
    return curve, suspected
