"""`JobAnimation`: workers and tasks, shown by the same player as ranks and messages.

    the job (in the middle) ── map 3 ──▶ worker 1     assigned
    the job ◀── map 3 done ── worker 1                and its cell in both tables fills

Node 0 is the job, node k + 1 is worker k. A cell of a table is a task: filled on the
job's table when it is done, on a worker's as long as its output lies on that disk.
"""

from collections import Counter
from typing import ClassVar

from distlab.show.canvas.text import literal
from distlab.show.player.animation import MOST_ROWS, Animation, Frame
from distlab.show.player.geometry import MOST_CHUNKS, MOST_TABLES, Geometry
from distlab.show.player.job_steps import described, moments_of
from distlab.show.player.shown_steps import Move
from distlab.show.reading.alt_text import capital, left_out, plural
from distlab.show.reading.attempts import Attempts
from distlab.show.reading.rounds import selected
from distlab.show.reading.trace_reading import Reading, Span

__all__ = ["JobAnimation"]

_MOST_FANNED = 5
_STATES = {"done": "moving", "undone": "undone", "lost": "stuck", "failed": "stuck"}


class JobAnimation(Animation):
    """The animation of a trace of workers; see `Animation` for its attributes."""

    BARS, LANES = "Tasks done so far", "Who did what"
    STATES: ClassVar = {
        "moving": "done",
        "waiting": "done, another attempt was first",
        "stuck": "lost or failed",
        "undone": "done, its output lost later",
    }
    VIEWS = ("graph", "lanes")
    WHOLE = True

    def __init__(self, trace, title=""):
        self.attempts = attempts = Attempts(trace)
        self.reading = Reading(trace)
        self.title, self.bound, self.who = literal(title, 80), None, trace.who
        self.world_size = trace.world_size + 1
        self.tasks = list(dict.fromkeys(_in_order(attempts)))
        few = len(self.tasks) <= MOST_CHUNKS and self.world_size <= MOST_TABLES
        self.chunks = len(self.tasks) if few else 0
        workers = range(1, self.world_size)
        self.geometry = self._laid_out(workers)
        self.rows, _ = selected([*workers], MOST_ROWS)
        self.stuck, self.gone = [], []
        faults = [event for event in trace.events if event.kind == "fault"]
        self.faults = [event._replace(rank=event.rank + 1) for event in faults]
        self.shown_steps = moments_of(attempts)
        self.begin_s, self.end_s = attempts.start_s, attempts.last_s
        self.lasts_s = max(self.end_s - self.begin_s, 1e-9)
        self.frames = self._frames()
        self.spans = [
            Span(
                e.worker + 1, _STATES.get(e.fate, "waiting"), e.start, e.end, _short(e)
            )
            for e in attempts.tries
        ]
        self.subtitle = attempts.headline()
        self.notes = self._notes()

    def _laid_out(self, workers):
        if 0 < len(workers) <= _MOST_FANNED:
            return Geometry.fan(len(workers), self.chunks)
        pairs = {pair for w in workers for pair in ((0, w), (w, 0))}
        shape = "tree" if workers else "ring"
        return Geometry.of(pairs, self.world_size, self.chunks, shape)

    def name(self, rank):
        """Return the name of a node: "worker 0"."""
        return f"{self.who} {rank - 1}" if rank else "the job"

    def node_name(self, rank):
        """Return the text in a node."""
        return str(rank - 1) if rank else "job"

    def cell_name(self, chunk, wide):
        """Return the text under a cell: the number of its task."""
        return self.tasks[chunk].rpartition(" ")[2]

    def amount(self, count):
        """Return a number of tasks as text."""
        return f"{count}"

    def _frames(self):
        none = (0,) * self.world_size
        everywhere = [
            (r, c) for r in range(self.world_size) for c in range(self.chunks)
        ]
        tables, sent = dict.fromkeys(everywhere, none), [0] * self.world_size
        text = "No task has been handed out yet."
        if self.chunks:
            text += (
                " A cell is a task, in the order in which tasks are first handed out. "
                "It fills on the job's table when its task is done, and on a worker's "
                "while the output lies there."
            )
        if not self.shown_steps:
            text = "No task was handed out: there is nothing to play."
        frames = [Frame("Start", "start", text, [], sent, tables, self.begin_s, [])]
        done = Counter()
        for number, moment in enumerate(self.shown_steps, 1):
            before, tables = tables, tables | self._changed(moment, tables)
            sent = list(sent)
            for each in moment.ended:
                if each.fate in ("done", "undone"):
                    sent[each.worker + 1] += 1
                    done[each.kind] += 1
            for kill in moment.kills:
                for task in kill.undone:
                    done[self.attempts.kind_of(task)] -= 1
            changed = [key for key in tables if tables[key] != before[key]]
            frame = Frame(
                self._title(moment, done), self._short(moment, number),
                described(moment, self.attempts), self._moves(moment), sent, tables,
                moment.at_s, [], changed,
                dead=[kill.worker + 1 for kill in moment.kills],
            )  # fmt: skip
            frames.append(frame)
        return frames

    def _changed(self, moment, tables):
        """Return the cells that change: tasks done, and outputs lost."""
        changed, none = {}, (0,) * self.world_size
        if not self.chunks:
            return changed
        for kill in moment.kills:
            own = kill.worker + 1
            changed |= {(own, chunk): none for chunk in range(self.chunks)}
            changed |= {(0, self.tasks.index(task)): none for task in kill.undone}
        for each in moment.ended:
            if each.fate in ("done", "undone"):
                chunk, own = self.tasks.index(each.task), each.worker + 1
                filled = tuple(int(rank == own) for rank in range(self.world_size))
                changed[0, chunk] = filled
                if each.kind != self.attempts.kinds[-1]:
                    changed[own, chunk] = filled
        return {key: counts for key, counts in changed.items() if tables[key] != counts}

    def _title(self, moment, done):
        if moment.kills:
            kills = [f"{self.who} {k.worker} {k.how}" for k in moment.kills[:3]]
            return capital(" and ".join(kills))
        kind = moment.kind
        total = self.attempts.tasks[kind]
        noun = f"tasks of {kind}" if kind[-1:].isdigit() else f"{kind}s"
        return f"{done[kind]} of {total} {noun} done"

    def _short(self, moment, number):
        if moment.kills:
            return "kill"
        first = self.shown_steps.index(
            next(m for m in self.shown_steps if m.kind == moment.kind)
        )
        return moment.kind if first + 1 == number else str(number)

    def _moves(self, moment):
        moves = [
            Move(e.worker + 1, 0, 0, 0, 1, (), (), "arrived", _short(e))
            for e in moment.ended
            if e.fate in ("done", "undone", "late")
        ]
        return moves + [
            Move(0, e.worker + 1, 0, 0, 1, (), (), "arrived", _short(e))
            for e in moment.begun
        ]

    def _notes(self):
        notes = []
        if len(self.rows) < self.world_size - 1:
            hidden = MOST_ROWS - 1, self.world_size - 3
            notes.append(left_out(self.who, *hidden))
        if not self.chunks and self.tasks:
            notes.append(
                f"Tables of tasks are drawn for up to {MOST_CHUNKS} tasks on "
                f"{MOST_TABLES - 1} {self.who}s."
            )
        if any(moment.merged > 1 for moment in self.shown_steps):
            count = sum(moment.merged for moment in self.shown_steps)
            notes.append(
                f"{count:,} moments are shown in {len(self.shown_steps):,} frames."
            )
        return notes

    def alt(self) -> str:
        """Return the text alternative of the animation."""
        said = [f"{self.title}."] if self.title else []
        said.append(f"Player of {self.subtitle}.")
        said += [f"{frame.title}: {frame.text}" for frame in self.frames[1:13]]
        if len(self.frames) > 13:
            said.append(f"And {plural(len(self.frames) - 13, 'more frame')}.")
        return " ".join([*said, *self.notes])


def _in_order(attempts):
    """Return the tasks, kind by kind."""
    by_kind = sorted(attempts.tries, key=lambda each: attempts.kinds.index(each.kind))
    return [each.task for each in by_kind]


def _short(each):
    tried = f" ·{each.number}" if each.number > 1 else ""
    return each.task.rpartition(", ")[2] + tried
