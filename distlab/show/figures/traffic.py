"""`traffic`: the bytes that each rank sent, against the least that any must send.

720 B   █                    3.00 x the bound
        █
240 B ╌╌█╌╌╌╌╌╌╌╌╌█╌█╌█╌█╌╌  bound
        █ ▄ ▄ ▄   █ █ █ █
        0 1 2 3   0 1 2 3
         naive     ring
"""

import itertools
from collections import Counter
from typing import NamedTuple

from distlab.errors import InvalidArgument
from distlab.show.canvas.canvas import (
    MARGIN,
    Canvas,
    bars,
    is_narrow,
    page_width,
    points,
    strokes,
    underlay,
    write,
)
from distlab.show.canvas.picture import Picture
from distlab.show.canvas.scale import Scale
from distlab.show.canvas.text import fitted, literal, width_of
from distlab.show.canvas.theme import INK, MUTED, rank_color
from distlab.show.reading.alt_text import listed, plural
from distlab.show.reading.amounts import checked_amount, shown, times
from distlab.show.reading.trace_reading import trace_of
from distlab.trace import Trace
from distlab.units import readable_bytes

__all__ = ["traffic"]

_TICK, _RANK, _NAME = 8.25, 8.25, 9
_SMALL = {"size": _TICK, "color": MUTED}
_HEAD, _HEIGHT, _FOOT = 0.5, 2.4, 0.62
_MOST_RANKS, _MOST_RUNS, _MOST_TOLD = 16, 8, 8
_WIDEST, _NARROWEST, _APART = 0.5, 0.145, 0.3
_LEAST = 0.8  # inches: of a group of bars
_JUMP = 0.7  # room for the dots where ranks are left out, in bars
_EXAMPLE = 'traffic({"ring": report}, bound_bytes=2 * (n - 1) / n * size)'


def traffic(
    runs, *, bound_bytes: float, bound_label: str = "bound", title: str = ""
) -> Picture:
    """Draw one bar per rank, one group of bars per run, and the bound as a dashed line.

    Over the busiest rank of each run stands its ratio to the bound. Of more than 16
    ranks some are left out, never the busiest, which a note reports.

    runs: a `Trace` or an object that has one, such as a report; or name -> trace,
    report or list of bytes by rank. bound_bytes: the least that a rank has to send.

    Raises: InvalidArgument naming the run that cannot be drawn.
    """
    bound = checked_amount(bound_bytes, "bound_bytes", _EXAMPLE)
    groups = [_RunBytes(name, sent) for name, sent in _checked(runs)]
    label = literal(bound_label, 40)
    return Picture(lambda: _Traffic(groups, bound, label).canvas(title))


class _RunBytes(NamedTuple):
    """The bytes that each rank of one run sent. name: "" if there is one run only."""

    name: str
    sent: list[float]

    def factor(self, bound):
        """Return the busiest rank's bytes as a multiple of the bound, in words."""
        if bound:
            return f"{times(max(self.sent) / bound)} the bound"
        return f"{readable_bytes(max(self.sent))}, bound 0"

    def described(self, bound):
        if len(set(self.sent)) == 1:
            each = f"{readable_bytes(self.sent[0])} by each of "
            words = each + plural(len(self.sent), "rank")
        elif len(self.sent) <= _MOST_TOLD:
            words = ", ".join(
                f"{readable_bytes(count)} by rank {rank}"
                for rank, count in enumerate(self.sent)
            )
        else:
            ends = (min(self.sent), max(self.sent))
            words = " to ".join(
                f"{readable_bytes(count)} by rank {self.sent.index(count)}"
                for count in ends
            )
            words = f"from {words}"
        return f"{self.name or 'Sent'}: {words}; busiest {self.factor(bound)}."


class _Traffic:
    """Groups of bars on one scale of bytes. Coordinates are inches on the page."""

    def __init__(self, groups, bound, label):
        self.groups, self.bound, self.label = groups[:_MOST_RUNS], bound, label
        self.skipped = len(groups) - len(self.groups)
        most = [max(group.sent) for group in self.groups]
        self.scale = Scale([0.0, bound, *most], log=False, from_zero=True)
        self.ticks = [tick for tick in self.scale.ticks(5) if tick == int(tick)]
        widest = max(width_of(readable_bytes(tick), _TICK) for tick in self.ticks)
        self.left = MARGIN + 0.1 + max(widest, width_of("rank", _TICK))
        self.label_lines = [fitted(label, 1.5, _TICK), readable_bytes(bound)]
        wide = max(width_of(line, _TICK, False, True) for line in self.label_lines)
        self.right = page_width() - MARGIN - (0 if is_narrow() else wide + 0.12)
        self.columns = min(len(self.groups), int((self.right - self.left) / _LEAST))
        self.column = (self.right - self.left) / max(1, self.columns)
        room = self.column - _APART
        most = max(3, min(_MOST_RANKS, int(room / _NARROWEST - _JUMP)))
        self.places = [shown(group.sent, most) for group in self.groups]
        self.offsets = [_offsets(ranks) for ranks, _ in self.places]
        self.pitch = min(_WIDEST, room / max(bars[-1] + 1 for bars in self.offsets))

    def canvas(self, title):
        said = [group.described(self.bound) for group in self.groups]
        notes = self._notes()
        named = any(group.name for group in self.groups)
        room = _HEAD + _HEIGHT + _FOOT - (0 if named else 0.2)
        rows = -(-len(self.groups) // self.columns)
        canvas = Canvas(rows * room, title=title, subtitle=" ".join(notes))
        self.page = canvas.page
        for row in range(0, len(self.groups), self.columns):
            self.top = canvas.top + _HEAD + room * (row // self.columns)
            self.bottom = self.top + _HEIGHT
            self._draw_axis()
            for number in range(row, min(row + self.columns, len(self.groups))):
                self._draw_group(number, self.groups[number])
            self._draw_bound()
        head = f"Bytes sent by each rank. {self.label}: "
        head += f"{readable_bytes(self.bound)} a rank."
        return canvas.described([head, *said, *notes])

    def _y(self, count):
        return self.bottom - self.scale.share(count) * _HEIGHT

    def _draw_axis(self):
        for tick in self.ticks:
            y = self._y(tick)
            strokes(self.page, [(self.left, y, self.right, y)], zorder=0)
            words = readable_bytes(tick)
            write(self.page, self.left - 0.08, y, words, align="right", **_SMALL)
        line = (self.left, self.bottom, self.right, self.bottom)
        strokes(self.page, [line], MUTED, zorder=4)
        words = "bytes sent by each rank"
        write(self.page, MARGIN, self.top - 0.34, words, **_SMALL)
        below = self.left - 0.08, self.bottom + 0.28
        write(self.page, *below, "rank", align="right", **_SMALL)

    def _draw_group(self, number, group):
        ranks, offsets = self.places[number][0], self.offsets[number]
        middle = self.left + (number % self.columns + 0.5) * self.column
        xs = [middle + (at - offsets[-1] / 2) * self.pitch for at in offsets]
        for x, rank in zip(xs, ranks, strict=True):
            self._draw_bar(x, rank, group.sent[rank])
        for at in range(1, len(ranks)):
            if ranks[at] != ranks[at - 1] + 1:
                x = (xs[at - 1] + xs[at]) / 2
                write(self.page, x, self.bottom + 0.28, "…", align="center", **_SMALL)
        name = fitted(group.name, self.column - 0.1, _NAME, bold=True)
        y = self.bottom + 0.52
        write(self.page, middle, y, name, size=_NAME, bold=True, align="center")
        counts = [group.sent[rank] for rank in ranks]
        alike = min(group.sent) == max(group.sent)
        busiest = middle if alike else xs[counts.index(max(counts))]
        self._draw_factor(group, busiest, middle)

    def _draw_bar(self, x, rank, count):
        half = 0.38 * self.pitch
        if count:
            box = (x - half, self._y(count), x + half, self.bottom)
            bars(self.page, [box], rank_color(rank), gid="sent")
        points(self.page, [x], [self.bottom + 0.12], rank, size=5)
        if width_of(str(rank), _RANK) < self.pitch:
            words = {"size": _RANK, "color": MUTED, "align": "center"}
            write(self.page, x, self.bottom + 0.28, str(rank), **words)

    def _draw_factor(self, group, x, middle):
        """Write the factor over the bar of the busiest rank, clear of the bound."""
        words, size = group.factor(self.bound), 8.5
        if width_of(words, size, True) > self.column - 0.1:
            words = words.partition(" the ")[0]
        reach = max(0.0, (self.column - 0.1 - width_of(words, size, True)) / 2)
        x = min(max(x, middle - reach), middle + reach)
        y = self._y(max(group.sent)) - 0.13
        if abs(self._y(self.bound) - y) < 0.12:
            y = self._y(self.bound) - 0.13
        style = {"size": size, "bold": True, "align": "center"}
        underlay(write(self.page, x, y, words, **style))

    def _draw_bound(self):
        y = self._y(self.bound)
        line = (self.left, y, self.right + 0.06, y)
        strokes(self.page, [line], INK, width=1.2, dashed=True, zorder=6, gid="bound")
        label, count = self.label_lines
        if is_narrow():
            words = fitted(f"dashed: {label}, {count}", 2.8, _TICK)
            write(self.page, MARGIN, self.top - 0.18, words, color=MUTED)
            return
        write(self.page, self.right + 0.12, y - 0.08, label, color=MUTED)
        write(self.page, self.right + 0.12, y + 0.08, count, mono=True)

    def _notes(self):
        """Return sentences on the ranks and runs that are left out."""
        notes = {}
        for group, (ranks, left) in zip(self.groups, self.places, strict=True):
            if left:
                notes.setdefault((len(left), len(left) + len(ranks)), []).append(group)
        notes = [
            f"{hidden} of {count} ranks{_of(groups, self.groups)} are left out; "
            "none of them sent more."
            for (hidden, count), groups in notes.items()
        ]
        if self.skipped:
            notes.append(f"{plural(self.skipped, 'run')} left out for lack of room.")
        return notes


def _of(groups, drawn):
    """Return words for the runs of a note, "" if there is one run only."""
    if len(groups) == len(drawn):
        return "" if len(groups) == 1 else " of each run"
    return f" of {listed([group.name for group in groups], 4)}"


def _offsets(ranks):
    """Return the position of each rank's bar, in bars from the first."""
    offsets = [0.0]
    for last, rank in itertools.pairwise(ranks):
        offsets.append(offsets[-1] + (1 if rank == last + 1 else 1 + _JUMP))
    return offsets


def _checked(runs):
    """Return (name, bytes by rank) for each run.

    Raises: InvalidArgument naming the first run that cannot be drawn.
    """
    if not hasattr(runs, "items"):
        return [("", _sent(trace_of(runs), "runs"))]
    if not runs:
        raise InvalidArgument(f"there is nothing to draw: no runs. {_EXAMPLE}")
    return [
        (literal(name), _sent(run, f"runs[{name!r}]")) for name, run in runs.items()
    ]


def _sent(run, where):
    """Return the bytes that each rank sent, of a trace or of a list of them."""
    trace = getattr(run, "trace", run)
    if isinstance(trace, Trace):
        counted = Counter()
        for event in trace.events:
            if event.kind == "send" and event.end is not None:
                counted[event.rank] += event.bytes
        sent = [float(counted[rank]) for rank in range(trace.world_size)]
    elif hasattr(run, "__iter__") and not isinstance(run, str | dict):
        sent = [checked_amount(count, f"a count in {where}", _EXAMPLE) for count in run]
    else:
        raise InvalidArgument(
            f"{where} is a trace, what carries one, or a list of bytes by rank, and "
            f"got {type(run).__name__}. For example: {_EXAMPLE}"
        )
    if not sent:
        raise InvalidArgument(f"{where} has no ranks. For example: {_EXAMPLE}")
    return sent
