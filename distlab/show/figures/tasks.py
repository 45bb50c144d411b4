"""`tasks`: one lane per worker, and in it its attempts at tasks, one bar each.

    worker 0   │map 0│map 2│map 4│      │▨map 1▨│reduce 0│
    worker 1   │map 1│map 3┄┄✗ killed   │map 3  │reduce 1│

An attempt's fate shows in its hatching and rim, and its task's kind in its fill.
"""

from distlab.show.canvas.canvas import (
    MARGIN,
    Canvas,
    bars,
    page_width,
    points,
    strokes,
    underlay,
    write,
)
from distlab.show.canvas.picture import Picture
from distlab.show.canvas.text import literal, width_of
from distlab.show.canvas.theme import (
    GRID,
    INK,
    KIND_COLORS,
    MUTED,
    PAPER,
    WAITING,
    WARNING,
    tint,
)
from distlab.show.canvas.time_axis import TimeAxis
from distlab.show.reading.alt_text import left_out, listed
from distlab.show.reading.attempts import FATES, Attempts
from distlab.show.reading.rounds import selected
from distlab.show.reading.trace_reading import trace_of

__all__ = ["tasks"]

_MOST_LANES, _TALLEST, _SHORTEST, _HEIGHT = 64, 0.5, 0.17, 6.0
_HEAD, _FOOT, _PAD = 0.16, 0.5, 0.06
_TOLD_LANES, _TOLD_TRIES = 8, 16
_DARK, _STRONG, _MIDDLE, _LIGHT, _PALE = KIND_COLORS
_FILLS = (_LIGHT, _STRONG, _PALE, _DARK, _MIDDLE)
_DARKS = (_STRONG, _DARK, _MIDDLE)
_FEW = 32  # so few bars are named even if the others have no room for a name
_MOSTLY = 0.75  # of a kind's bars have room for "map 3", or all say "3", or nothing
_OTHERS = {
    "undone": {"color": PAPER, "edge": _MIDDLE, "hatch": "xxxx"},
    "late": {"color": WAITING, "edge": MUTED},
    "failed": {"color": tint(WARNING, 0.1), "edge": WARNING, "hatch": "\\\\\\\\"},
    "lost": {"color": tint(WARNING, 0.1), "edge": WARNING, "dashed": True},
    "given up": {"color": PAPER, "edge": MUTED, "dashed": True},
}
_WORDS = {
    "undone": "done, then lost with the worker's disk",
    "late": "another attempt was first",
    "failed": "failed",
    "lost": "lost with its worker",
    "given up": "given up at the job's end",
}


def tasks(trace, title: str = "") -> Picture:
    """Draw every worker's attempts over time, worker 0 on top.

    trace: that of a data job, or anything with such a `.trace`, such as its output.

    Raises: InvalidArgument if there is no trace in it.
    """
    attempts = Attempts(trace_of(trace))
    return Picture(lambda: _Tasks(attempts).canvas(title))


class _Tasks:
    """Lanes of bars on one clock. Coordinates are inches on the page."""

    def __init__(self, attempts):
        self.attempts = attempts
        self.workers = list(range(attempts.trace.world_size))
        self.shown, self.hidden = selected(self.workers, _MOST_LANES)
        self.lane = {worker: number for number, worker in enumerate(self.shown)}
        self.tries = [each for each in attempts.tries if each.worker in self.lane]
        self.pitch = max(_SHORTEST, min(_TALLEST, _HEIGHT / max(1, len(self.shown))))
        self.size = 8.5 if self.pitch > 0.25 else 8.25
        self.clock = TimeAxis(attempts)
        who = attempts.trace.who
        self.names = [f"{who} {worker}" for worker in self.shown]
        widest = max((width_of(name, self.size) for name in self.names), default=0)
        self.clock.spread(MARGIN + widest + 0.15, page_width() - MARGIN - 0.1)
        fills = enumerate(attempts.kinds)
        self.fills = {kind: _FILLS[number % len(_FILLS)] for number, kind in fills}
        self.shorter = {kind: self._shorter(kind) for kind in attempts.kinds}

    def canvas(self, title):
        attempts, notes = self.attempts, []
        if self.hidden:
            who = attempts.trace.who
            notes.append(left_out(who, self.hidden[0], self.hidden[-1]))
        height = self.pitch * max(1, len(self.shown))
        subtitle = " ".join([f"{attempts.headline()}.", *notes])
        room = _HEAD + height + _FOOT
        canvas = Canvas(room, title=title, subtitle=subtitle, key=self._key())
        self.page, self.top = canvas.page, canvas.top + _HEAD
        if attempts.trace.events:
            self.clock.draw(self.page, self.top, height + 0.03)
        self._draw_names()
        for fate in FATES:
            self._draw_bars(fate)
        for each in self.tries:
            self._name(each)
        self._draw_kills()
        said = [f"Tasks of {attempts.headline()}.", *notes, *attempts.sentences()]
        return canvas.described([*said, *self._lanes_words()])

    def _key(self):
        done = [each for each in self.tries if each.fate == "done"]
        kinds = list(dict.fromkeys(each.kind for each in done))
        key = [({"color": self.fills[kind]}, literal(kind, 20)) for kind in kinds[:8]]
        if any(each.again for each in done):
            key.append((_look(_LIGHT, "again"), "rim: done again"))
        if any(each.backup for each in done):
            key.append((_look(_LIGHT, "backup"), "hatched: a backup was first"))
        if any(e.number > 1 and self.shorter[e.kind] < 3 for e in self.tries):
            key.append((None, "·2: second attempt"))
        fates = {each.fate for each in self.tries}
        key += [(_OTHERS[fate], _WORDS[fate]) for fate in FATES[1:] if fate in fates]
        if self.attempts.kills:
            key.append((None, "cross: the worker dies, another takes its place"))
        return key

    def _draw_names(self):
        for lane, name in enumerate(self.names):
            y = self._middle(lane)
            write(self.page, MARGIN, y, name, size=self.size)
            line = (self.clock.left, y, self.clock.right, y)
            strokes(self.page, [line], GRID, width=0.6, zorder=0)

    def _middle(self, lane):
        return self.top + (lane + 0.5) * self.pitch

    def _box(self, each):
        y, half = self._middle(self.lane[each.worker]), 0.4 * self.pitch
        inch = self.clock.inch
        return inch(each.start), y - half, inch(each.end), y + half

    def _draw_bars(self, fate):
        """Draw the bars of one fate, one artist for each look."""
        looks = {}
        for each in self.tries:
            if each.fate == fate:
                how = "backup" if each.backup else "again" if each.again else "first"
                own = (each.kind, how) if fate == "done" else ("", "")
                looks.setdefault(own, []).append(self._box(each))
        for (kind, how), boxes in looks.items():
            look = _look(self.fills[kind], how) if kind else _OTHERS[fate]
            bars(self.page, boxes, gid=f"task: {fate}", **look)

    def _name(self, each):
        """Write a bar's name into it, the longest that has room."""
        left, top, right, bottom = self._box(each)
        names = _names(each)[self.shorter[each.kind] :]
        words = next((name for name in names if self._fits(name, each)), "")
        if not words:
            return
        dark = each.fate == "done" and self.fills[each.kind] in _DARKS
        x, y = (left + right) / 2, (top + bottom) / 2
        style = {"size": self.size, "align": "center", "color": PAPER if dark else INK}
        fill = self._fill(each)
        text = write(self.page, x, y, words, on=fill, **style)
        if each.backup or "hatch" in _OTHERS.get(each.fate, ()):
            underlay(text, fill)

    def _fill(self, each):
        if each.fate == "done":
            return self.fills[each.kind]
        return _OTHERS[each.fate]["color"]

    def _fits(self, words, each):
        room = self.clock.inch(each.end) - self.clock.inch(each.start)
        return width_of(words, self.size) + _PAD <= room

    def _shorter(self, kind):
        """Return the number of names that are too long for most bars of a kind."""
        own = [each for each in self.tries if each.kind == kind]
        for which in (0, 2):
            fitting = sum(self._fits(_names(each)[which], each) for each in own)
            if fitting >= _MOSTLY * len(own):
                return which and 1
        return 1 if len(own) <= _FEW else len(_names(own[0]))

    def _draw_kills(self):
        """Draw a cross on the upper edge of the lane, clear of the bars' text."""
        size = min(9, 30 * self.pitch)
        for kill in self.attempts.kills:
            if kill.worker in self.lane:
                x = self.clock.inch(kill.at_s)
                y = self._middle(self.lane[kill.worker]) - 0.4 * self.pitch
                how = {"size": size, "marker": "X", "color": WARNING, "gid": "kill"}
                points(self.page, [x], [y], 0, **how)

    def _lanes_words(self):
        """Return a sentence on each of the first workers: its attempts in order."""
        said = []
        for worker in self.shown[:_TOLD_LANES]:
            own = [e for e in self.tries if e.worker == worker]
            did = listed(map(_described, own), _TOLD_TRIES) or "nothing"
            said.append(f"{self.attempts.trace.who.capitalize()} {worker}: {did}.")
        more = len(self.workers) - _TOLD_LANES
        return [*said, f"And {more} more."] if more > 0 else said


def _look(fill, how):
    """Return the keyword arguments for the bar of a successful attempt."""
    light = _PALE if fill in _DARKS else _STRONG
    if how == "backup":
        return {"color": fill, "edge": light, "hatch": "////"}
    return {"color": fill, "edge": INK if how == "again" else PAPER}


def _names(each):
    """Return the possible texts in a bar, the longest first."""
    tried = f" ·{each.number}" if each.number > 1 else ""
    part = each.task.removeprefix(each.kind).strip(", ")  # "partition 3", or "3"
    name = part if " " in part else each.task
    short = part.rpartition(" ")[2]
    return [f"{name}{tried}", f"{short}{tried}", short]


def _described(each):
    how = [f"attempt {each.number}"] * (each.number > 1) + ["backup"] * each.backup
    how += [each.fate] * (each.fate != "done")
    return f"{each.task} ({', '.join(how)})" if how else each.task
