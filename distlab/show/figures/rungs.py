"""`rungs`: when each trial of a tuning run reached which rung, and which went on.

27 steps                     ●
 9 steps         ●    ○   ●
 3 steps   ● ○ ●   ○ ○   ●   ○        over time; lower in a row is a lower loss
"""

import math

from distlab.errors import InvalidArgument
from distlab.show.canvas.canvas import (
    MARGIN,
    Canvas,
    bars,
    page_width,
    points,
    strokes,
    write,
)
from distlab.show.canvas.picture import Picture
from distlab.show.canvas.scale import Ruler, Scale, readable_number
from distlab.show.canvas.text import width_of
from distlab.show.canvas.theme import MUTED, RANK_COLORS, TRACK, WARNING
from distlab.show.reading.alt_text import plural

__all__ = ["rungs"]

_NAME, _ROW, _PAD, _HEAD, _FOOT = 8.5, 0.8, 0.12, 0.28, 0.36
_ON, _BEST = RANK_COLORS[0], RANK_COLORS[5]


def rungs(run, title: str = "") -> Picture:
    """Draw the reports of a tuning run over time, one row for each rung.

    run: a `TuningRun`, or what has its `attempts`.

    Raises: InvalidArgument if it has no report of a loss.
    """
    attempts = getattr(run, "attempts", ())
    ended = [one for one in attempts if one.loss is not None and one.outcome == "done"]
    if not ended:
        raise InvalidArgument(
            "rungs draws a TuningRun in which a trial has reported a loss, and got "
            f"{type(run).__name__} without one. For example: "
            "rungs(simulate_tuning(Asha(9, [1, 3, 9]), loss_after, draw_curves(9)))"
        )
    lost = [one for one in attempts if one.outcome == "lost"]
    return Picture(lambda: _Rungs(ended, lost).canvas(title))


class _Rungs:
    """Reports by rung on one axis of time. Coordinates are inches on the page."""

    def __init__(self, ended, lost):
        self.ended, self.lost = ended, lost
        self.steps = {one.rung: one.stop for one in ended}
        self.reports = {(one.trial, one.rung): one for one in ended}
        self.ranked = {rung: [] for rung in self.steps}
        for one in sorted(ended, key=lambda one: (math.isnan(one.loss), one.loss)):
            self.ranked[one.rung].append(one.trial)
        self.best = self.ranked[max(self.steps)][0]

    def canvas(self, title):
        names = {rung: plural(steps, "step") for rung, steps in self.steps.items()}
        left = MARGIN + max(width_of(name, _NAME) for name in names.values()) + 0.2
        last_s = max(one.end_s for one in [*self.ended, *self.lost])
        scale = Scale([0.0, last_s], log=False, from_zero=True)
        self.ruler = Ruler(scale, (left, page_width() - MARGIN - 0.1), readable_number)
        height = _ROW * len(names)
        key = [({"color": _ON}, "promoted"), ({"color": MUTED}, "not promoted")]
        key += [({"color": _BEST}, "the best trial of the last rung")]
        key += [(None, "cross: lost with its worker")] * bool(self.lost)
        canvas = Canvas(_HEAD + height + _FOOT, title=title, key=key)
        self.page, self.top = canvas.page, canvas.top + _HEAD
        words = "time, s; lower in a row: a lower loss, by rank"
        write(self.page, MARGIN, self.top - 0.15, words, color=MUTED)
        for rung, name in names.items():
            y = self._foot(rung)
            box = (left, y - _ROW + _PAD / 2, self.ruler.right, y - _PAD / 2)
            bars(self.page, [box], TRACK, gid="rung", zorder=0)
            write(self.page, MARGIN, y - _ROW / 2, name, size=_NAME)
        self.ruler.draw(self.page, self.top, self.top + height)
        self._draw_promotions()
        self._draw_reports()
        return canvas.described(self._words(names))

    def _foot(self, rung):
        above = sum(other > rung for other in self.steps)
        return self.top + _ROW * (above + 1)

    def _place(self, one):
        ranked = self.ranked[one.rung]
        share = (ranked.index(one.trial) + 0.5) / len(ranked)
        y = self._foot(one.rung) - _PAD - share * (_ROW - 2 * _PAD)
        return self.ruler.inch(one.end_s), y

    def _next(self, one):
        return self.reports.get((one.trial, one.rung + 1))

    def _draw_promotions(self):
        for trial_is_best, color in ((False, _ON), (True, _BEST)):
            lines = [
                (*self._place(one), *self._place(self._next(one)))
                for one in self.ended
                if self._next(one) and (one.trial == self.best) == trial_is_best
            ]
            strokes(self.page, lines, color, width=0.8, gid="promotion", zorder=2)

    def _draw_reports(self):
        looks = {MUTED: [], _ON: [], _BEST: []}
        for one in self.ended:
            color = _ON if self._next(one) else MUTED
            looks[_BEST if one.trial == self.best else color].append(self._place(one))
        for color, places in looks.items():
            xs, ys = [x for x, _ in places], [y for _, y in places]
            points(self.page, xs, ys, 0, size=5, color=color, gid="report")
        xs = [self.ruler.inch(one.end_s) for one in self.lost]
        ys = [self._foot(one.rung) - _ROW / 2 for one in self.lost]
        points(self.page, xs, ys, 0, marker="X", color=WARNING, gid="lost")

    def _words(self, names):
        yield "Reports of a tuning run over time, by rung."
        for rung, name in names.items():
            own = [one for one in self.ended if one.rung == rung]
            on = sum(bool(self._next(one)) for one in own)
            yield f"After {name}: {plural(len(own), 'report')}, {on} promoted."
        loss = self.reports[self.best, max(self.steps)].loss
        yield f"Trial {self.best} is best, with loss {loss:.4g}."
        if self.lost:
            yield f"{plural(len(self.lost), 'attempt')} lost with the worker."
