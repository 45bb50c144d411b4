"""`shuffle`: the bytes from every map task to every reduce task.

         ▂    ▁    █        bytes to each reduce
         0    1    2
map 0  │ 3 │  1 │ 29 │ ███  bytes from each map
map 1  │ 2 │  2 │ 31 │ ███
"""

import math
from collections import defaultdict

from distlab.errors import InvalidArgument
from distlab.show.canvas.canvas import MARGIN, Canvas, bars, page_width, strokes, write
from distlab.show.canvas.picture import Picture
from distlab.show.canvas.text import width_of
from distlab.show.canvas.theme import GRID, INK, MUTED, PAPER, rank_color, tint
from distlab.show.reading.alt_text import listed, plural
from distlab.show.reading.amounts import checked_amount, times
from distlab.units import readable_bytes

__all__ = ["shuffle"]

_MOST, _TOLD, _SHADES = 64, 16, 24
_SIZE, _SMALL = 8.25, 8.25
_WIDEST, _TALLEST, _HEIGHT = 0.95, 0.34, 5.2
_MARGINAL, _SIDE = 0.8, 1.35  # room for the bars of the sums: above, and at the right
_EXAMPLE = "shuffle([[120, 80], [90, 110]])"
_COLOR = rank_color(0)
_WRITTEN_ON = 0.75  # the strongest shade on which ink is read well


def shuffle(matrix, title: str = "") -> Picture:
    """Draw the bytes from each map task, a row, to each reduce task, a column.

    Darker is more. Bars at the edges are the sums, so that skew is seen at a glance;
    beside the largest stands how many times the mean it is. Of more than 64 rows or
    columns neighbours are added up.

    matrix: a list of rows, or an object that has one as `.shuffled`, such as the output
    of a job.

    Raises: InvalidArgument for anything but a matrix of bytes.
    """
    matrix = _checked(getattr(matrix, "shuffled", matrix))
    return Picture(lambda: _Shuffle(matrix).canvas(title))


class _Shuffle:
    """A matrix of cells with its sums. Coordinates are inches on the page."""

    names = "map", "reduce"

    def __init__(self, matrix):
        self.matrix = matrix
        self.sizes = len(matrix), len(matrix[0])
        self.each = [-(-count // _MOST) for count in self.sizes]
        self.cells = _added(matrix, *self.each)
        self.sent = [sum(row) for row in self.cells]
        self.got = [sum(column) for column in zip(*self.cells, strict=True)]
        self.total = sum(self.sent)
        self.largest = max(map(max, self.cells)) or 1
        rows, columns = len(self.cells), len(self.got)
        self.labels = [
            _labels(count, each)
            for count, each in zip(self.sizes, self.each, strict=True)
        ]
        words = [f"{self.names[0]} {label}" for label in self.labels[0]]
        self.left = MARGIN + max(width_of(text, _SIZE) for text in words) + 0.15
        room = page_width() - MARGIN - _SIDE - self.left
        self.wide = min(_WIDEST, room / columns)
        self.tall = min(_TALLEST, _HEIGHT / rows)
        self.right = self.left + self.wide * columns

    def canvas(self, title):
        rows, columns = self.names
        parts = plural(self.sizes[0], rows), plural(self.sizes[1], columns)
        head = f"{readable_bytes(self.total)} from {parts[0]} to {parts[1]}"
        notes = [
            f"Each {way} is {each} {name}s."
            for way, each, name in zip(
                ("row", "column"), self.each, self.names, strict=True
            )
            if each > 1
        ]
        height = self.tall * len(self.cells)
        room = _MARGINAL + 0.45 + height + 0.15
        subtitle = " ".join([f"{head}.", *notes])
        canvas = Canvas(room, title=title, subtitle=subtitle)
        self.page, self.top = canvas.page, canvas.top + _MARGINAL + 0.45
        self._draw_cells()
        self._draw_columns()
        self._draw_rows()
        return canvas.described([f"Shuffle of {head}.", *notes, *self._described()])

    def _draw_cells(self):
        words = [[readable_bytes(count) for count in row] for row in self.cells]
        widest = max(width_of(text, _SIZE) for row in words for text in row)
        written = widest + 0.08 <= self.wide and self.tall >= 0.16
        strongest = _WRITTEN_ON if written else 1.0
        boxes = defaultdict(list)
        for row, counts in enumerate(self.cells):
            for column, count in enumerate(counts):
                box = self._box(row, column)
                boxes[math.ceil(_SHADES * count / self.largest)].append(box)
                if written:
                    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
                    text = words[row][column]
                    on = tint(_COLOR, 0.5) if count else PAPER
                    write(self.page, x, y, text, size=_SIZE, align="center", on=on)
        rim = PAPER if min(self.wide, self.tall) > 0.08 else None
        for shade, some in boxes.items():
            share = 0.08 + (strongest - 0.08) * shade / _SHADES
            color = tint(_COLOR, share) if shade else PAPER
            bars(self.page, some, color, edge=rim, gid="cell")

    def _box(self, row, column):
        x, y = self.left + column * self.wide, self.top + row * self.tall
        return x, y, x + self.wide, y + self.tall

    def _draw_columns(self):
        """Draw over each column its sum, and over the largest its bytes and ratio."""
        base, name = self.top - 0.27, self.names[1]
        most = max(self.got) or 1
        x = self.left - 0.1
        write(self.page, x, base + 0.13, name, size=_SIZE, color=MUTED, align="right")
        mean = self.total / len(self.got)
        y = base - (_MARGINAL - 0.25) * mean / most
        boxes = []
        for column, count in enumerate(self.got):
            a, _, c, _ = self._box(0, column)
            pad = 0.12 * (c - a)
            high = (_MARGINAL - 0.25) * count / most
            boxes.append((a + pad, base - high, c - pad, base))
        bars(self.page, boxes, MUTED, gid="received")
        if self.total and len(self.got) > 1:
            line = (self.left, y, self.right + 0.06, y)
            strokes(self.page, [line], INK, width=1, dashed=True, zorder=6, gid="mean")
            words = f"mean {readable_bytes(round(mean))}"
            write(self.page, self.right + 0.1, y, words, size=_SIZE, color=MUTED)
        self._draw_numbers(base + 0.13)
        largest = self.got.index(max(self.got))
        words = readable_bytes(self.got[largest])
        if self.total and len(self.got) > 1:
            words += f", {times(most / mean)} the mean"
        half = width_of(words, _SIZE, True) / 2
        x = (boxes[largest][0] + boxes[largest][2]) / 2
        x = max(self.left + half, min(x, max(self.right, self.left + 2 * half) - half))
        how = {"size": _SIZE, "bold": True, "align": "center"}
        write(self.page, x, base - _MARGINAL + 0.13, words, **how)

    def _draw_numbers(self, y):
        """Number the columns, or every second or third if there is no more room."""
        widest = max(width_of(label, _SIZE) for label in self.labels[1])
        every = math.ceil((widest + 0.08) / self.wide)
        for column, label in list(enumerate(self.labels[1]))[::every]:
            x = self.left + (column + 0.5) * self.wide
            write(self.page, x, y, label, size=_SIZE, color=MUTED, align="center")

    def _draw_rows(self):
        """Name the rows, and draw beside each its sum."""
        most, begin = max(self.sent) or 1, self.right + 0.12
        widest = max(width_of(readable_bytes(count), _SIZE) for count in self.sent)
        scale = (_SIDE - 0.3 - widest) / most
        boxes, size = [], _SIZE if self.tall >= 0.15 else _SMALL
        every = max(1, math.ceil(0.13 / self.tall))
        for row, count in enumerate(self.sent):
            y = self.top + (row + 0.5) * self.tall
            end = begin + scale * count
            boxes.append((begin, y - 0.3 * self.tall, end, y + 0.3 * self.tall))
            if row % every == 0:
                label = f"{self.names[0]} {self.labels[0][row]}"
                x = self.left - 0.1
                write(self.page, x, y, label, size=size, color=MUTED, align="right")
                words = readable_bytes(count)
                write(self.page, end + 0.06, y, words, size=size, color=MUTED)
        bars(self.page, boxes, MUTED, gid="sent")
        edge = (begin, self.top, begin, self.top + self.tall * len(self.sent))
        strokes(self.page, [edge], GRID)

    def _described(self):
        """Return sentences on the bytes that tasks receive and send."""
        if not self.total:
            return ["Nothing is moved."]
        rows, columns = self.names
        got = [sum(column) for column in zip(*self.matrix, strict=True)]
        sent = [sum(row) for row in self.matrix]
        most, least = got.index(max(got)), got.index(min(got))
        ends = [readable_bytes(got[at]) for at in (most, least)]
        ratio = times(got[most] * len(got) / self.total)
        said = [
            f"{columns.capitalize()} {most} gets the most, {ends[0]}, "
            f"{ratio} the mean; {columns} {least} the least, {ends[1]}."
        ]
        each = [f"{at}: {readable_bytes(count)}" for at, count in enumerate(got)]
        said.append(f"To each {columns}: {listed(each, _TOLD)}.")
        ends = [readable_bytes(count) for count in (min(sent), max(sent))]
        said.append(f"A {rows} sends {ends[0]} to {ends[1]}.")
        return said


def _added(matrix, rows, columns):
    """Return the matrix with so many neighbouring rows and columns made one."""
    fewer = [
        [sum(counts) for counts in zip(*matrix[at : at + rows], strict=True)]
        for at in range(0, len(matrix), rows)
    ]
    return [
        [sum(row[at : at + columns]) for at in range(0, len(row), columns)]
        for row in fewer
    ]


def _labels(count, each):
    """Return the number of each group, or its first and last."""
    ends = [(at, min(count, at + each) - 1) for at in range(0, count, each)]
    return [str(a) if a == b else f"{a}–{b}" for a, b in ends]


def _checked(matrix):
    """Return the rows. Raises: InvalidArgument for anything but a matrix of bytes."""
    try:
        rows = [list(row) for row in matrix]
    except TypeError:
        rows = []
    if not rows or not rows[0] or len({len(row) for row in rows}) > 1:
        raise InvalidArgument(
            "a shuffle is a list of rows of the same length, each the bytes from one "
            f"map task to every reduce task. For example: {_EXAMPLE}"
        )
    return [
        [checked_amount(c, f"a count in row {at}", _EXAMPLE) for c in row]
        for at, row in enumerate(rows)
    ]
