"""`pipeline`: which stage works on which microbatch when, and when it does nothing.

stage 0  │F0│F1│F2│▒▒▒▒▒│B0│B1│B2│
stage 1  │▒▒│F0│F1│F2│B0│B1│B2│▒▒│      ▒ bubble
"""

from distlab.show.amounts import amount_of
from distlab.show.grid import selected
from distlab.show.kinds import looks_of
from distlab.show.lettering import literal, width_of
from distlab.show.picture import Picture
from distlab.show.ruler import Ruler
from distlab.show.scale import Scale
from distlab.show.schedule import Schedule
from distlab.show.sheet import MARGIN, PAGE_WIDTH, Sheet, bars, write
from distlab.show.telling import left_out
from distlab.show.theme import MUTED, TRACK, tint

__all__ = ["pipeline"]

_HEAD, _FOOT = 0.16, 0.5
_MOST_STAGES, _TALLEST, _SHORTEST, _HEIGHT = 64, 0.42, 0.17, 6.0
_PAD = 0.06  # beside what is written in a box, in inches
_RIMMED = 0.05  # a box narrower than this, in inches, gets no rim
_BUBBLE = {"color": TRACK, "edge": tint(MUTED, 0.45), "hatch": "////"}


def pipeline(cells, *, title: str = "", unit: str = "slot") -> Picture:
    """Draw stages as rows, and in them what each does over time.

    The bubble is the time in which a stage does nothing, between the first start and
    the last end of all stages; cells of kind "idle" are part of it.

    cells: (stage, start, end, kind, microbatch) each. start, end: in `unit`s. kind:
    "forward", "backward", "weights", "idle" or any word. microbatch: what is written
    in the box, or None. unit: "slot", "s", "ms" or another word.

    Raises: InvalidArgument naming the cell that cannot be drawn.
    """
    return _Pipeline(Schedule(cells, literal(unit, 24))).picture(title)


class _Pipeline:
    """Rows of boxes on one scale of time. Places are inches on the page."""

    def __init__(self, schedule):
        self.schedule = schedule
        self.stages, self.hidden = selected(schedule.stages, _MOST_STAGES)
        self.pitch = max(_SHORTEST, min(_TALLEST, _HEIGHT / len(self.stages)))
        self.size = 8.5 if self.pitch > 0.25 else 6.5
        self.looks = looks_of(schedule.kinds)
        names = [width_of(f"stage {stage}", self.size) for stage in self.stages]
        scale = Scale([schedule.first, schedule.last], log=False)
        scale.low, scale.high = schedule.first, schedule.last
        left, right = MARGIN + max(names) + 0.15, PAGE_WIDTH - MARGIN - 0.1
        self.ruler = Ruler(scale, (left, right), self._tick)
        self.letters = schedule.letters()
        if not self._all_fit():
            self.letters = dict.fromkeys(self.letters, "")

    def _tick(self, time):
        return amount_of(time, "s" if self.schedule.unit == "s" else "")

    def picture(self, title):
        schedule = self.schedule
        notes = []
        if self.hidden:
            notes.append(left_out("stage", self.hidden[0], self.hidden[-1]))
        height = self.pitch * len(self.stages)
        subtitle = " ".join([f"{schedule.headline()}.", *notes])
        room = _HEAD + height + _FOOT
        sheet = Sheet(room, title=title, subtitle=subtitle, key=self._key())
        self.page, self.top = sheet.page, sheet.top + _HEAD
        self.ruler.draw(self.page, self.top, self.top + height + 0.03)
        self._draw_names()
        self._draw_bubbles()
        self._draw_cells()
        self._draw_numbers()
        x, y = self.ruler.right, self.top + height + 0.37
        write(self.page, x, y, schedule.axis_label(), color=MUTED, align="right")
        said = [f"{literal(title)}:"] if title else []
        said += [f"Pipeline, {schedule.headline()}.", *notes, *schedule.sentences()]
        return Picture(sheet.figure, " ".join(said))

    def _key(self):
        key = []
        for kind, look in self.looks.items():
            letter = f"{self.letters[kind]}: " if self.letters[kind] else ""
            key.append((look.swatch, f"{letter}{literal(kind, 30)}"))
        if any(self.schedule.bubbles.values()):
            key.append((_BUBBLE, "bubble: the stage does nothing"))
        return key

    def _box(self, row, start, end):
        y, half = self.top + (row + 0.5) * self.pitch, 0.43 * self.pitch
        return self.ruler.inch(start), y - half, self.ruler.inch(end), y + half

    def _draw_names(self):
        for row, stage in enumerate(self.stages):
            y = self.top + (row + 0.5) * self.pitch
            write(self.page, MARGIN, y, f"stage {stage}", size=self.size)

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
            (self._box(row, cell.start, cell.end), cell.microbatch)
            for row, stage in enumerate(self.stages)
            for cell in self.schedule.cells[stage]
            if cell.kind == kind
        ]

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
                if number and self._fits(number, box[2] - box[0]):
                    words = self.letters[kind] + number
                    self._write_in(box, words, self.looks[kind])

    def _all_fit(self):
        """Whether there is a letter for every kind, and room for it in every box."""
        if not all(self.letters.values()):
            return False
        return all(
            self._fits(
                self.letters[cell.kind] + cell.microbatch,
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
        text = write(self.page, x, y, words, **style)
        if look.hatch:
            paper = {"fc": look.color, "ec": "none", "boxstyle": "round,pad=0.1"}
            text.set_bbox(paper)
