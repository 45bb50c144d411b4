"""Schedules of `pipeline`, cells of stages over time: validation and text."""

import itertools
import re
from collections import Counter
from typing import NamedTuple

from distlab.errors import InvalidArgument
from distlab.show.canvas.text import literal
from distlab.show.reading.alt_text import listed, plural
from distlab.show.reading.amounts import amount_of, checked_number

__all__ = ["Cell", "PipelineCells", "first_difference", "kinds_of", "letters_of"]
__all__ += ["primes_of"]

_IDLE = "idle"
_MOST_CELLS, _MOST_STAGES = 16, 8
_EXAMPLE = 'pipeline([(0, 0, 1, "forward", 0), (1, 1, 2, "forward", 0)])'


class Cell(NamedTuple):
    """A stretch of one stage's time. microbatch: the text in it, "" for none."""

    stage: int
    start: float
    end: float
    kind: str
    microbatch: str


class PipelineCells:
    """Cells in order of time, and the stretches that they leave open.

    unit: of all times. first, last: the first start and the last end of all stages.
    stages: their numbers, ascending. kinds: in order of their first start.
    cells: by stage, without those of kind "idle". bubbles: by stage, (start, end).

    Raises: InvalidArgument naming the cell that cannot be drawn.
    """

    WHAT, IDLE = "pipeline", "bubble: the stage does nothing"

    def __init__(self, cells, unit: str):
        self.unit = unit
        given = sorted(_checked(cells), key=lambda cell: (cell.start, cell.stage))
        self.first = min(cell.start for cell in given)
        self.last = max(cell.end for cell in given)
        if self.first == self.last:
            raise InvalidArgument(f"these cells take no time. For example: {_EXAMPLE}")
        self._blur = 1e-9 * (self.last - self.first)  # sums of floats meet within this
        self.stages = sorted({cell.stage for cell in given})
        self.cells, self.bubbles = {}, {}
        for stage in self.stages:
            own = [cell for cell in given if cell.stage == stage]
            self._check_apart(own)
            self.cells[stage] = [cell for cell in own if cell.kind.lower() != _IDLE]
            self.bubbles[stage] = self._open(self.cells[stage])
        busy = [cell for cell in given if cell.kind.lower() != _IDLE]
        self.kinds = list(dict.fromkeys(cell.kind for cell in busy))
        self.microbatches = {cell.microbatch for cell in busy} - {""}

    @classmethod
    def of(cls, cells, unit: str) -> "PipelineCells":
        """Return a schedule of these cells; a `PipelineCells` is returned as it is."""
        return cells if isinstance(cells, cls) else cls(cells, unit)

    def name(self, stage: int) -> str:
        """Return the name of a row."""
        return f"stage {stage}"

    @property
    def bubble(self) -> float:
        """The share of all stages' time in which a stage does nothing, 0 to 1."""
        idle = sum(map(self._idle, self.stages))
        return idle / (len(self.stages) * (self.last - self.first))

    def headline(self) -> str:
        """Return the number of microbatches, and the bubble, in one line."""
        count = len(self.microbatches)
        head = f"{count:,} microbatches; " if count > 1 else ""
        room = f"{plural(len(self.stages), 'stage')} x {self._time(self._lasted())}"
        return f"{head}bubble {_percent(self.bubble)} of {room}"

    def sentences(self) -> list[str]:
        """Return a sentence on each stage: its works in order, and its idle time."""
        said = [self._described(stage) for stage in self.stages[:_MOST_STAGES]]
        if len(self.stages) > _MOST_STAGES:
            said.append(f"And {len(self.stages) - _MOST_STAGES} more stages.")
        return said

    def axis_label(self) -> str:
        """Return the label of the time axis; seconds stand beside each number."""
        return "time" if self.unit == "s" else f"time, {self._plural()}"

    def held(self, stage: int) -> list[tuple[float, float, int]]:
        """Return (start, end, count) of the stretches in which microbatches are held.

        One is held from its forward work to the end of its last backward work.
        """
        steps, ends = Counter(), {}
        for cell in self.cells[stage]:
            if cell.kind.startswith("forward"):
                steps[cell.start] += 1
            else:
                ends[cell.microbatch, chunk_of(cell.kind)] = cell.end
        steps.subtract(ends.values())
        times = sorted(time for time, change in steps.items() if change)
        counts = itertools.accumulate(steps[time] for time in times)
        spans = zip(itertools.pairwise(times), counts, strict=False)
        return [(start, end, n) for (start, end), n in spans if n > 0]

    @property
    def holds(self) -> str:
        """The name of the things that stages hold."""
        chunks = any(map(chunk_of, self.kinds))
        return "chunks of microbatches" if chunks else "microbatches"

    def most_held(self, stage: int) -> int:
        """Return the largest number of microbatches that a stage holds."""
        return max((count for *_, count in self.held(stage)), default=0)

    def moment(self, does: list[str], held: list[int]) -> str:
        """Return the stages' works and held microbatches at a time, in words."""
        if len(does) > _MOST_STAGES:
            work = f"{sum(map('idle'.__ne__, does))} of {len(does)} stages work"
            held = [f"{min(held)} to {max(held)}"]
        else:
            work = f"Stages do {', '.join(map('{}: {}'.format, self.stages, does))}"
        return f"{work}. They hold {', '.join(map(str, held))} {self.holds}."

    def held_sentences(self) -> list[str]:
        """Return the largest number of microbatches held by each stage, in words."""
        each = ", ".join(str(self.most_held(s)) for s in self.stages[:_MOST_STAGES])
        what = f"{self.holds.capitalize()} held at most"
        return [f"{what}, from stage {self.stages[0]}: {each}."]

    def _lasted(self):
        return self.last - self.first

    def _idle(self, stage):
        return sum(end - start for start, end in self.bubbles[stage])

    def _time(self, time):
        return amount_of(time, self.unit if time == 1 else self._plural())

    def _plural(self):
        """Return the unit's plural; symbols, such as ms, have none."""
        return self.unit + "s" if len(self.unit) > 2 else self.unit

    def _described(self, stage):
        shown = self.cells[stage][:_MOST_CELLS]
        work = []
        for kind, cells in itertools.groupby(shown, key=lambda cell: cell.kind):
            work.append(_named(kind, ", ".join(c.microbatch for c in cells)))
        more = len(self.cells[stage]) - len(shown)
        words = listed(work, _MOST_CELLS, "; ") + (f"; and {more} more" if more else "")
        idle = self._time(self._idle(stage))
        return f"{self.name(stage).capitalize()}: {words or 'nothing'}; idle {idle}."

    def _check_apart(self, cells):
        """Raises: InvalidArgument if two cells of one stage overlap."""
        for one, other in itertools.pairwise(cells):
            if other.start < one.end - self._blur:
                raise InvalidArgument(
                    f"stage {one.stage} does two things at once: {_when(one)} and "
                    f"{_when(other)}. Cells of one stage follow each other."
                )

    def _open(self, cells):
        """Return the stretches between the first start and last end without a cell."""
        ends = [self.first, *(cell.end for cell in cells)]
        starts = [*(cell.start for cell in cells), self.last]
        gaps = zip(ends, starts, strict=True)
        return [(end, start) for end, start in gaps if start - end > self._blur]


def chunk_of(kind: str) -> int:
    """Return the chunk of a kind of work: 1 for "forward, chunk 1", else 0."""
    found = re.search(r", chunk (\d+)$", kind)
    return int(found[1]) if found else 0


def primes_of(kind: str) -> str:
    """Return the primes behind a microbatch of a chunk: F0, F0', F0''."""
    return "'" * chunk_of(kind)


def kinds_of(schedules) -> list[str]:
    """Return the kinds of work in all schedules, those of chunk 0 before others."""
    every = dict.fromkeys(kind for each in schedules for kind in each.kinds)
    return sorted(every, key=chunk_of)


def letters_of(kinds) -> dict[str, str]:
    """Return kind -> a capital, that of its chunk 0, or "" where all are taken."""
    letters = {}
    for kind in kinds:
        base = kind.split(", chunk ")[0]
        own = (letter.upper() for letter in base if letter.isalpha())
        taken = letters.values()
        if base not in letters:
            letters[base] = next((one for one in own if one not in taken), "")
    return {kind: letters[kind.split(", chunk ")[0]] for kind in kinds}


def first_difference(
    one: PipelineCells,
    other: PipelineCells,
    names: tuple[str, str] = ("above", "below"),
) -> tuple[str, list]:
    """Return the first difference in words, and its (stage, start, end) in each.

    They differ in the order in which a stage does its works, not in their times. None
    stands for no work. names: of the two, in the words.
    """
    found = []
    for stage in sorted({*one.stages, *other.stages}):
        both = one.cells.get(stage, ()), other.cells.get(stage, ())
        for pair in itertools.zip_longest(*both):
            if len({cell and cell[3:] for cell in pair}) > 1:
                found.append((min(cell.start for cell in pair if cell), stage, pair))
                break
    if not found:
        return "Every stage does the same works in the same order.", [None, None]
    _, stage, pair = min(found)
    mine, yours = (_named(*cell[3:]) if cell else "nothing" for cell in pair)
    said = f"First difference, on stage {stage}: {mine} {names[0]}, {yours} {names[1]}."
    return said, [cell and cell[:3] for cell in pair]


def _percent(share):
    digits = ".0f" if share >= 0.095 or not share else ".2g"
    return f"{100 * share:{digits}} %"


def _named(kind, microbatches):
    """Return "forward 0", or "forward 0 (chunk 1)"."""
    base, _, chunk = kind.partition(", chunk ")
    return f"{base} {microbatches}".rstrip() + f" (chunk {chunk})" * bool(chunk)


def _when(cell):
    return f"{_named(*cell[3:])} from {cell.start:g} to {cell.end:g}"


def _checked(cells):
    """Return the cells. Raises: InvalidArgument naming the first malformed one."""
    try:
        given = [tuple(cell) for cell in cells]
    except TypeError:
        given = []
    if not given:
        raise InvalidArgument(
            "cells are tuples (stage, start, end, kind, microbatch), and got "
            f"{literal(repr(cells), 60)}. For example: {_EXAMPLE}"
        )
    return [_cell(cell, f"cell {number}") for number, cell in enumerate(given)]


def _cell(cell, where):
    if len(cell) != 5:
        raise InvalidArgument(
            f"{where} is (stage, start, end, kind, microbatch), and got "
            f"{literal(repr(cell), 60)}. For example: {_EXAMPLE}"
        )
    stage, start, end, kind, microbatch = cell
    number = checked_number(stage, f"the stage of {where}", _EXAMPLE)
    if number < 0 or number != int(number):
        raise InvalidArgument(
            f"the stage of {where} is counted 0, 1, 2, and got {stage!r}. "
            f"For example: {_EXAMPLE}"
        )
    start = checked_number(start, f"the start of {where}", _EXAMPLE)
    end = checked_number(end, f"the end of {where}", _EXAMPLE)
    if end < start:
        raise InvalidArgument(
            f"{where} ends at {end:g}, before its start at {start:g}."
        )
    words = "" if microbatch is None else literal(microbatch, 12)
    return Cell(int(number), start, end, literal(kind) or "unnamed", words)
