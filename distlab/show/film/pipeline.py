"""`PipelineFilm`: a pipeline's schedule over time, as lanes that play.

stage 0  │F0│F1│F2│     │B0│▒▒▒      at the line of now: what each stage does,
stage 1     │F0│F1│B0│▒▒▒            and how many microbatches it holds
"""

from distlab.show.film.film import MOST_ROWS, Film, Frame
from distlab.show.film.geometry import Geometry
from distlab.show.lettering import literal
from distlab.show.reading import Reading, Span
from distlab.show.schedule import Schedule, letters_of, primes_of
from distlab.show.telling import left_out
from distlab.trace import Trace

__all__ = ["PipelineFilm"]

_MOST_FRAMES = 2000


class PipelineFilm(Film):
    """The film of cells (stage, start, end, kind, microbatch); see `show.pipeline`."""

    LANES, COLORS, MORE = "Who does what", ("", ""), ()
    VIEWS, OPENS = ("lanes",), "lanes"

    def __init__(self, cells, title="", unit="slot"):
        self.schedule = schedule = Schedule(cells, literal(unit, 24))
        self.title, self.bound, self.who = literal(title, 80), None, "stage"
        self.unit = schedule.axis_label().partition(", ")[2] or "s"
        self.letters = letters_of(schedule.kinds)
        count = max(schedule.stages) + 1
        self.world_size, self.reading = count, Reading(Trace(count, []))
        self.geometry, self.chunks = Geometry.of([], count, 0), 0
        many = len(schedule.stages) > MOST_ROWS
        shown = schedule.stages[: MOST_ROWS - 1], schedule.stages[-1:]
        self.rows = [*shown[0], *shown[1]] if many else schedule.stages
        self.stuck, self.gone, self.faults, self.stops = [], [], [], []
        self.begin_s, self.end_s = schedule.first, schedule.last
        self.lasts_s = self.end_s - self.begin_s
        self.spans = [
            Span(stage, _state(cell.kind), cell.start, cell.end, self._words(cell))
            for stage in schedule.stages
            for cell in schedule.cells[stage]
        ]
        self.frames = self._frames()
        self.subtitle = schedule.headline()
        hidden = many and (schedule.stages[MOST_ROWS - 1], schedule.stages[-2])
        self.notes = [left_out("stage", *hidden)] if hidden else []

    def _words(self, cell):
        return self.letters[cell.kind] + cell.microbatch + primes_of(cell.kind)

    def name(self, rank):
        """Return what a lane is called."""
        return f"stage {rank}"

    def legend(self):
        """Return what the letters in the lanes mean."""
        words = (f"{self.letters[k]}{primes_of(k)}: {k}" for k in self.schedule.kinds)
        return " · ".join([*words, "empty: bubble"])

    def _frames(self):
        """Return a frame for each moment at which a work begins, and the end."""
        cells = self.schedule.cells
        begins = sorted({cell.start for own in cells.values() for cell in own})
        times = [*begins[:: -(-len(begins) // _MOST_FRAMES)], self.end_s]
        return [self._frame(number, at) for number, at in enumerate(times)]

    def _frame(self, number, at):
        does, holds = [], []
        for stage in self.schedule.stages[:MOST_ROWS]:
            cells = self.schedule.cells[stage]
            now = [self._words(c) for c in cells if c.start <= at < c.end]
            does.append(f"{stage}: {now[0] if now else 'idle'}")
            held = (n for a, b, n in self.schedule.held(stage) if a <= at < b)
            holds.append(str(next(held, 0)))
        title = f"At {at:.4g} {self.unit}"
        text = (
            f"Stages do {', '.join(does)}. They hold {', '.join(holds)} microbatches."
        )
        sent = [0] * self.world_size
        return Frame(title, "" if number else "start", text, [], sent, {}, at, [])

    @property
    def full_scale(self):
        """1: there are no bars."""
        return 1

    def alt(self):
        """Return in words what the film shows."""
        said = [f"{self.title}."] if self.title else []
        said += [f"Player of a pipeline, {self.subtitle}.", *self.schedule.sentences()]
        return " ".join([*said, *self.schedule.held_sentences(), *self.notes])


def _state(kind):
    base = kind.split(",")[0].lower()
    return base if base in ("forward", "backward", "weights") else "together"
