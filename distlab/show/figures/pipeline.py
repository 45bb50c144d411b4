"""`pipeline`: the microbatches that each stage works on over time, and its bubble.

stage 0  │F0│F1│F2│▒▒▒▒▒│B0│B1│B2│
stage 1  │▒▒│F0│F1│F2│B0│B1│B2│▒▒│      ▒ bubble

         ▁▁▂▂▃▃▃▃▃▃▃▂▂▁▁                microbatches that stage 0 holds
"""

from collections import defaultdict

from distlab.show.canvas.canvas import (
    MARGIN,
    Canvas,
    bars,
    page_width,
    shapes,
    underlay,
    write,
)
from distlab.show.canvas.picture import Picture
from distlab.show.canvas.scale import Ruler, Scale
from distlab.show.canvas.styles import looks_of
from distlab.show.canvas.text import literal, width_of, wrapped
from distlab.show.canvas.theme import MUTED, TRACK, WARNING, tint
from distlab.show.reading.alt_text import left_out
from distlab.show.reading.amounts import amount_of
from distlab.show.reading.pipeline_cells import (
    PipelineCells,
    first_difference,
    kinds_of,
    letters_of,
    primes_of,
)
from distlab.show.reading.rounds import selected

__all__ = ["pipeline"]

_HEAD, _FOOT, _APART = 0.16, 0.5, 0.34
_MOST_STAGES, _TALLEST, _SHORTEST, _HEIGHT = 64, 0.42, 0.17, 6.0
_PAD = 0.06  # beside the text in a box, in inches
_RIMMED = 0.05  # a box narrower than this, in inches, gets no rim
_BUBBLE = {"color": TRACK, "edge": tint(MUTED, 0.45), "hatch": "////"}
_HELD = {"color": tint(MUTED, 0.55)}


def pipeline(
    cells,
    beside=None,
    *,
    title="",
    unit="slot",
    names=("", ""),
    memory=False,
    rows=(),
) -> Picture:
    """Draw stages as rows, and in them the work of each over time.

    The bubble is the time in which a stage does nothing, between the first start and
    the last end of all stages; cells of kind "idle" are part of it. `player(cells)`
    plays the same picture, `compare(cells, others)` two of them on one clock.

    cells: (stage, start, end, kind, microbatch) each. start, end: in `unit`s. kind:
    "forward", "backward", "weights", "idle" or any word; "forward, chunk 1" is that of
    a stage's second chunk. microbatch: the text in the box, or None. Cells of a stage
    that start and end together are drawn side by side.
    beside: cells of another schedule, drawn below on the same clock; the first work
    that differs is framed in both. names: of the two.
    unit: "slot", "s", "ms" or another word. memory: True to draw the number of
    microbatches that each stage holds, from forward to the last backward work.
    rows: names of the rows, where these are no stages.

    Raises: InvalidArgument naming the cell that cannot be drawn.
    """
    given = [cells] if beside is None else [cells, beside]
    schedules = [PipelineCells.of(each, literal(unit, 24), rows) for each in given]
    return Picture(lambda: _drawn(schedules, title, names, memory))


def _drawn(schedules, title, names, memory):
    kinds = kinds_of(schedules)
    charts = _charts(schedules, looks_of(kinds), memory)
    marks = {
        kind: (letter, primes_of(kind)) for kind, letter in letters_of(kinds).items()
    }
    if not all(chart.fits(marks) for chart in charts):
        marks = dict.fromkeys(kinds, ("", ""))
    notes = list(dict.fromkeys(note for chart in charts for note in chart.notes))
    named = [f"{literal(name)}: " * bool(name) for name in names]
    heads = [f"{n}{s.headline()}." for n, s in zip(named, schedules, strict=False)]
    framed, lines, above = [None], [[]], 0
    if len(schedules) > 1:
        said, framed = first_difference(*schedules)
        notes = [said, *notes]
        room = page_width() - 2 * MARGIN
        lines = [wrapped(head, room, 9, bold=True) for head in heads]
        above = 0.12 + 0.18 * max(map(len, lines))
    height = sum(above + chart.height for chart in charts) + _APART * (len(charts) - 1)
    key = _key(kinds, marks, schedules, memory)
    subtitle = " ".join(notes if above else [*heads, *notes])
    canvas = Canvas(_HEAD + height + _FOOT, title=title, subtitle=subtitle, key=key)
    top = canvas.top + _HEAD
    for chart, head, frame in zip(charts, lines, framed, strict=True):
        for line, words in enumerate(head):
            write(
                canvas.page, MARGIN, top + 0.08 + 0.18 * line, words, size=9, bold=True
            )
        chart.draw(canvas.page, top + above, marks, frame)
        top += above + chart.height + _APART
    x, y = charts[-1].ruler.right, top - _APART + 0.37
    axis = schedules[-1].axis_label()
    write(canvas.page, x, y, axis, color=MUTED, align="right")
    said = []
    for head, schedule in zip(heads, schedules, strict=True):
        said += [f"{schedule.WHAT.capitalize()}, {head}", *schedule.sentences()]
        said += schedule.held_sentences() if memory else []
    return canvas.described([*said, *notes])


def _charts(schedules, looks, memory):
    """Return a chart of each, all on the same scales."""
    ends = min(s.first for s in schedules), max(s.last for s in schedules)
    most = max(s.most_held(stage) for s in schedules for stage in s.stages)
    rows = sum(min(len(s.stages), _MOST_STAGES) for s in schedules) * (1 + memory)
    pitch = max(_SHORTEST, min(_TALLEST, _HEIGHT / rows))
    return [_Chart(s, looks, ends, pitch, memory and (most or 1)) for s in schedules]


def _key(kinds, marks, schedules, memory):
    key = []
    for kind, look in looks_of(kinds).items():
        mark = "".join(marks[kind])
        key.append((look.swatch, f"{mark}{': ' * bool(mark)}{literal(kind, 30)}"))
    if any(any(schedule.bubbles.values()) for schedule in schedules):
        key.append((_BUBBLE, schedules[0].IDLE))
    if memory:
        key.append((_HELD, f"{schedules[0].holds} held; left, the most"))
    return key


class _Chart:
    """Rows of boxes on one scale of time. Coordinates are inches on the page.

    pitch: from row to row. most: that a stage can hold in the picture, or 0 for none.
    """

    def __init__(self, schedule, looks, ends, pitch, most):
        self.schedule, self.looks, self.pitch, self.most = schedule, looks, pitch, most
        self.stages, self.hidden = selected(schedule.stages, _MOST_STAGES)
        self.size = 8.5 if self.pitch > 0.25 else 8.25
        names = [width_of(schedule.name(stage), self.size) for stage in self.stages]
        scale = Scale(list(ends), log=False)
        scale.low, scale.high = ends
        left, right = MARGIN + max(names) + 0.15, page_width() - MARGIN - 0.1
        self.ruler = Ruler(scale, (left, right), self._tick)
        self.holding = [s for s in self.stages if most and schedule.most_held(s)]
        self._beside = defaultdict(list)  # cells of a stage with one start and one end
        for stage in self.stages:
            for cell in schedule.cells[stage]:
                self._beside[stage, cell.start, cell.end].append(cell)
        rows = len(self.stages) + len(self.holding)
        self.height = self.pitch * rows + (0.2 if most else 0)
        shown = self.hidden and left_out("stage", self.hidden[0], self.hidden[-1])
        self.notes = [shown] if shown else []

    def _tick(self, time):
        return amount_of(time, "s" if self.schedule.unit == "s" else "")

    def draw(self, page, top, marks, framed):
        """Draw it; framed: (stage, start, end) of a work that stands out, or None."""
        self.page, self.top, self.marks = page, top, marks
        self.ruler.draw(page, top, top + self.height + 0.03)
        self._draw_names()
        self._draw_bubbles()
        self._draw_cells()
        self._draw_numbers()
        if framed and framed[0] in self.stages:
            box = self._box(self.stages.index(framed[0]), *framed[1:])
            style = {"edge": WARNING, "gid": "difference", "zorder": 7, "width": 2.6}
            bars(page, [box], "none", **style)
        if self.most:
            self._draw_held(top + self.pitch * len(self.stages) + 0.2)

    def _draw_held(self, top):
        """Draw for each stage the number of microbatches it holds as a height."""
        outlines, high = [], 0.86 * self.pitch
        for row, stage in enumerate(self.holding):
            floor = top + (row + 0.93) * self.pitch
            steps = [
                (self.ruler.inch(time), floor - high * count / self.most)
                for start, end, held in self.schedule.held(stage)
                for time, count in ((start, 0), (start, held), (end, held), (end, 0))
            ]
            outlines += [steps] if steps else []
            words, middle = f"holds {self.schedule.most_held(stage)}", floor - high / 2
            write(self.page, MARGIN, middle, words, size=self.size, color=MUTED)
        if outlines:
            shapes(self.page, outlines, _HELD["color"], gid="held")

    def _box(self, row, start, end):
        y, half = self.top + (row + 0.5) * self.pitch, 0.43 * self.pitch
        return self.ruler.inch(start), y - half, self.ruler.inch(end), y + half

    def _draw_names(self):
        for row, stage in enumerate(self.stages):
            y = self.top + (row + 0.5) * self.pitch
            write(self.page, MARGIN, y, self.schedule.name(stage), size=self.size)

    def _draw_bubbles(self):
        boxes = [
            self._box(row, *stretch)
            for row, stage in enumerate(self.stages)
            for stretch in self.schedule.bubbles[stage]
        ]
        if boxes:
            bars(self.page, boxes, gid="bubble", **_BUBBLE)

    def _rows(self, kind):
        """Return (box, microbatch) for each cell of a kind that has a row."""
        return [
            (self._lane(row, stage, cell), cell.microbatch)
            for row, stage in enumerate(self.stages)
            for cell in self.schedule.cells[stage]
            if cell.kind == kind
        ]

    def _lane(self, row, stage, cell):
        """Return a cell's box: a row's whole height, or a part beside others."""
        beside = self._beside[stage, cell.start, cell.end]
        left, top, right, bottom = self._box(row, cell.start, cell.end)
        high, place = (bottom - top) / len(beside), beside.index(cell)
        return left, top + place * high, right, top + (place + 1) * high

    def _draw_cells(self):
        """Draw all boxes, one artist for each kind, and keep them for their numbers."""
        self.boxes = {kind: self._rows(kind) for kind in self.looks}
        for kind, look in self.looks.items():
            boxes = [box for box, _ in self.boxes[kind]]
            if boxes:
                narrow = min(c - a for a, _, c, _ in boxes) < _RIMMED
                rim = look.color if narrow else look.line
                drawn = {"edge": rim, "hatch": look.hatch, "gid": f"cell: {kind}"}
                bars(self.page, boxes, look.color, **drawn)

    def _draw_numbers(self):
        """Write its microbatch into each box that has room for it."""
        for kind, boxes in self.boxes.items():
            for box, number in boxes:
                words = number.join(self.marks[kind])
                if number and self._fits(words, box[2] - box[0]):
                    self._write_in(box, words, self.looks[kind])

    def fits(self, marks):
        """Return True if every kind has a letter, and every box has room for it."""
        return all(letter for letter, _ in marks.values()) and all(
            self._fits(
                cell.microbatch.join(marks[cell.kind]),
                self.ruler.inch(cell.end) - self.ruler.inch(cell.start),
            )
            for stage in self.stages
            for cell in self.schedule.cells[stage]
            if cell.microbatch
        )

    def _fits(self, words, wide):
        return width_of(words, self.size) + _PAD <= wide

    def _write_in(self, box, words, look):
        x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
        style = {"size": self.size, "color": look.letters, "align": "center"}
        text = write(self.page, x, y, words, on=look.color, **style)
        if look.hatch:
            underlay(text, look.color)
