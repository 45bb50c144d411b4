"""`PipelineAnimation`: a pipeline's schedule over time, as lanes that play.

stage 0  │F0│F1│F2│▒▒▒▒▒│B0│▒▒▒│      at the line of now: the work of each stage,
           ▁▁▂▂▃▃▃▃▃▃▃▃▃▃▃▁▁    holds 3    and the microbatches that it holds
"""

from bisect import bisect_right
from itertools import groupby

from distlab.show.canvas.styles import looks_of
from distlab.show.canvas.text import literal
from distlab.show.player.animation import MOST_ROWS, Animation, Frame
from distlab.show.player.geometry import Geometry
from distlab.show.reading.alt_text import left_out
from distlab.show.reading.pipeline_cells import (
    PipelineCells,
    kinds_of,
    letters_of,
    primes_of,
)
from distlab.show.reading.rounds import selected
from distlab.show.reading.trace_reading import Reading, Span
from distlab.trace import Trace

__all__ = ["PipelineAnimation"]

_MOST_FRAMES = 2000


class PipelineAnimation(Animation):
    """The animation of a schedule, on one clock with those beside it.

    looks: kind -> colour, colour of its hatching, of letters on it, and hatching.
    key: (kind, meaning). held: (start, end, count) of each row. most: the largest such
    count. over: start and end of this schedule.
    """

    LANES = "Who does what"
    VIEWS, OPENS = ("lanes",), "lanes"

    def __init__(self, schedule: PipelineCells, title="", beside=()):
        self.schedule, every = schedule, [schedule, *beside]
        self.title, self.bound, self.who = literal(title, 80), None, "stage"
        self.unit = schedule.axis_label().partition(", ")[2] or "s"
        stages, count = schedule.stages, max(schedule.stages) + 1
        self.world_size, self.reading = count, Reading(Trace(count, []))
        self.geometry, self.chunks = Geometry.of([], count, 0), 0
        self.rows, hidden = selected(stages, MOST_ROWS)
        self.stuck, self.gone, self.faults, self.shown_steps = [], [], [], []
        self.over = schedule.first, schedule.last
        self.begin_s = min(s.first for s in every)
        self.end_s = max(s.last for s in every)
        self.lasts_s = self.end_s - self.begin_s
        self._color(kinds_of(every))
        self.held = [schedule.held(stage) for stage in self.rows]
        self.most = max(s.most_held(stage) for s in every for stage in s.stages) or 1
        self.spans = [
            Span(stage, kind, start, end, words)
            for stage in stages
            for start, end, words, kind in self._works(schedule.cells[stage])
        ]
        self.frames = self._frames(every)
        self.subtitle = schedule.headline()
        self.notes = [left_out("stage", hidden[0], hidden[-1])] if hidden else []

    def _color(self, kinds):
        self.letters = letters_of(kinds)
        self.looks = {
            kind: [look.color, look.line, look.letters, look.hatch]
            for kind, look in looks_of(kinds).items()
        }
        marks = {kind: self.letters[kind] + primes_of(kind) for kind in kinds}
        self.key = [[k, f"{marks[k]}: {k}" if marks[k] else k] for k in kinds]
        idle, held = self.schedule.IDLE.split(":")[0], f"{self.schedule.holds} held"
        self.key += [["box", idle], ["waiting", held]]

    def _words(self, cell):
        return self.letters[cell.kind] + cell.microbatch + primes_of(cell.kind)

    def _works(self, cells):
        """Return (start, end, words, kind), one for all cells that run side by side."""
        groups = groupby(cells, key=lambda cell: cell[1:3])
        return [
            (*times, "+".join(map(self._words, each)), each[0].kind)
            for times, found in groups
            for each in [list(found)]
        ]

    def name(self, rank):
        """Return the name of a lane."""
        return self.schedule.name(rank)

    def _frames(self, every):
        """Return a frame for each time at which a work begins, and for the end."""
        cells = [cell for s in every for own in s.cells.values() for cell in own]
        begins = sorted({cell.start for cell in cells})
        times = [*begins[:: -(-len(begins) // _MOST_FRAMES)], self.end_s]
        one, stages = self.schedule, self.schedule.stages
        own = (one.cells[stage] for stage in stages)
        does = [_over_time(work[:3] for work in self._works(cells)) for cells in own]
        holds = [_over_time(one.held(stage)) for stage in stages]
        return [self._frame(at, does, holds) for at in times]

    def _frame(self, at, does, holds):
        now = [step(at) or "idle" for step in does]
        held = [step(at) or 0 for step in holds]
        text = self.schedule.moment(now, held)
        title, sent = f"At {at:.4g} {self.unit}", [0] * self.world_size
        return Frame(title, f"{at:.4g}", text, [], sent, {}, at, [])

    def alt(self):
        """Return the text alternative of the animation."""
        said = [f"{self.title}."] if self.title else []
        what = self.schedule.WHAT
        said += [f"Player of a {what}, {self.subtitle}.", *self.schedule.sentences()]
        return " ".join([*said, *self.schedule.held_sentences(), *self.notes])


def _over_time(spans):
    """Return a function: time -> the third field of the span around it, or None."""
    spans = list(spans)
    starts = [start for start, _, _ in spans]

    def at(moment):
        _, end, what = spans[max(0, bisect_right(starts, moment) - 1)]
        return what if starts[0] <= moment < end else None

    return at if spans else lambda moment: None
