"""`Animation`: the animation of one trace, as plain data for a player."""

from dataclasses import dataclass, field
from typing import ClassVar

from distlab.show.canvas.text import literal
from distlab.show.player.explain import explain, fault_words, title_of
from distlab.show.player.geometry import MOST_CHUNKS, Geometry
from distlab.show.player.shown_steps import gone_ranks, shown_steps_of, tables_at_start
from distlab.show.reading.alt_text import capital, clocks, headline, left_out, plural
from distlab.show.reading.rounds import in_common, selected
from distlab.show.reading.trace_reading import Reading
from distlab.trace import is_lost, members_of
from distlab.units import readable_bytes

__all__ = ["Animation", "Frame"]

MOST_ROWS = 16


@dataclass
class Frame:
    """The state after one step, with the sums of all steps before it.

    title, short, text: of the step. moves: its messages. sent: bytes by rank so far.
    tables: (rank, chunk) -> counts; changed: those that are new. at_s: its time.
    ranks: in a barrier or collective. broken: True for the step of unfinished calls.
    dead: ranks that have died in it, or before, and are not replaced yet.
    cuts: pairs of nodes that are partitioned from each other.
    groups: the members of each subgroup that communicates in it.
    """

    title: str
    short: str
    text: str
    moves: list
    sent: list[int]
    tables: dict
    at_s: float
    ranks: list[int]
    changed: list = field(default_factory=list)
    broken: bool = False
    dead: list = field(default_factory=list)
    cuts: list = field(default_factory=list)
    groups: list = field(default_factory=list)


class Animation:
    """One trace, cut into frames; frame 0 is the start.

    reading: the trace with its counts. frames: the start, and one for each step.
    bounds: of the chunks, as in `Shares`. geometry: of the canvas. bound: (bytes per
    rank, its name) or None. rows: ranks that get a bar and a lane. stuck, faults: as
    the trace has them. gone: ranks that a fault ended. begin_s, end_s, lasts_s: start,
    end and duration. spans: of every lane. notes: on things left out, in words.
    """

    BARS, LANES = "Bytes sent so far", "Who waited"
    STATES: ClassVar = {
        "moving": "its message moves",
        "waiting": "waits for its peer",
        "together": "in a barrier or collective",
        "stuck": "never ended",
        "working": "its own work",
    }
    VIEWS = ("graph", "lanes", "space")
    OPENS = "graph"
    unit = ""  # of time, if it is not seconds
    looks, key, held, most, over = {}, [], [], 0, ()  # see `PipelineAnimation`
    spacetime = None  # a space-time view of its own
    logs = ()  # see `LogAnimation`
    WHOLE = False  # True if a contribution fills its cell, as there is only one

    def __init__(self, trace, title="", *, bound=None, shape="auto"):
        self.reading = Reading(trace)
        self.title = literal(title, 80)
        self.bound = bound
        self.world_size, self.who = trace.world_size, trace.who
        self.shown_steps = shown_steps_of(self.reading)
        pairs = {
            (move.src, move.dst) for stop in self.shown_steps for move in stop.moves
        }
        self.chunks = trace.shares.chunks if trace.shares else 0
        self.bounds = trace.shares.bounds if trace.shares else []
        self.geometry = Geometry.of(pairs, self.world_size, self.chunks, shape)
        self.rows, _ = selected([*range(self.world_size)], MOST_ROWS)
        self.stuck = sorted(self.reading.stuck)
        self.faults = [e for e in trace.events if e.kind == "fault"]
        self.gone = sorted(gone_ranks(trace))
        self.frames = self._frames()
        self.begin_s = self.frames[0].at_s
        self.end_s = max(self.reading.last_s, self.frames[-1].at_s)
        self.lasts_s = max(self.end_s - self.begin_s, 1e-9)
        self.spans = self.reading.spans(self.end_s)
        self.subtitle = headline(self.reading)
        self.notes = self._notes()

    def legend(self) -> list:
        """Return (state, meaning) of each colour and mark in the lanes."""
        there = {span.state for span in self.spans}
        key = [(state, said) for state, said in self.STATES.items() if state in there]
        messages = self.reading.messages
        if any(send and recv for send, recv in messages):
            key.append(("arrow", "message, from its send to its receive"))
        if any(send and is_lost(send) for send, _ in messages):
            key.append(("dropped", "message dropped by the network"))
        return key

    def name(self, rank: int) -> str:
        """Return the name of a node's lane."""
        return f"rank {rank}"

    def node_name(self, rank: int) -> str:
        """Return the text in a node."""
        return str(rank)

    def cell_name(self, chunk: int, wide: bool) -> str:
        """Return the text under a cell of a table."""
        return f"c{chunk}" if wide else str(chunk)

    def amount(self, count: int) -> str:
        """Return the text at the end of a bar."""
        return readable_bytes(count)

    def _frames(self):
        shown_steps, trace = self.shown_steps, self.reading.trace
        tables = tables_at_start(trace.shares, self.world_size)
        sent = [0] * self.world_size
        start_s = min(self.reading.start_s, shown_steps[0].at_s if shown_steps else 0.0)
        text = self._opening(bool(shown_steps))
        frames = [Frame("Start", "start", text, [], sent, tables, start_s, [])]
        rounds, last_title = self.reading.rounds, ""
        for stop, short in zip(shown_steps, _shorts(shown_steps), strict=True):
            text = explain(stop, tables, self.reading)
            text += self._struck(frames[-1].at_s, stop)
            title = title_of(stop, rounds)
            if title == last_title and stop.rounds[0]:
                title += f" (round {stop.rounds[0]} of {rounds})"
            else:
                last_title = title
            tables, sent = tables | stop.tables, list(sent)
            for move in stop.moves:
                sent[move.src] += move.sent
            frames.append(
                Frame(
                    title, short, text, stop.moves, sent, tables,
                    stop.at_s, stop.ranks, list(stop.tables), stop.broken,
                    [] if stop.broken else sorted(gone_ranks(trace, stop.at_s)),
                    groups=[members_of(g, self.world_size) for g in stop.groups if g],
                )
            )  # fmt: skip
        return frames

    def _struck(self, since_s, stop):
        """Return sentences on the faults of a step; the last step has its own."""
        came_back = any(event.label == "restart" for event in self.faults)
        if stop.broken or (self.shown_steps[-1].broken and not came_back):
            return ""
        until_s = float("inf") if stop.last else stop.at_s
        described = [
            fault_words(e) for e in self.faults if since_s < e.start <= until_s
        ]
        return "".join(f" {capital(words)}." for words in described)

    def _opening(self, anything):
        if not anything:
            return (
                "No rank sent a message or entered a barrier: there is nothing to play."
            )
        if not self.chunks:
            return "Nothing has been sent yet."
        shares = self.reading.trace.shares
        starts = [counts for tables in shares.held for counts in tables[0][1]]
        stripe = "A stripe in a cell is one rank's contribution to that chunk"
        if all(map(any, starts)):
            return f"Every rank holds its own tensor. {stripe}."
        return f"{stripe}; an empty cell holds nothing yet."

    def _notes(self):
        notes = clocks(self.reading.trace)
        if self.world_size > MOST_ROWS:
            notes.append(left_out("rank", MOST_ROWS - 1, self.world_size - 2))
        if self.chunks and not self.geometry.tables:
            notes.append("Tables of chunks are drawn for up to 16 ranks.")
        elif self.chunks > MOST_CHUNKS:
            notes.append(left_out("chunk", MOST_CHUNKS, self.chunks - 1))
        if any(stop.rounds[0] < stop.rounds[1] for stop in self.shown_steps):
            notes.append(
                f"{self.reading.rounds:,} rounds are shown in "
                f"{len(self.shown_steps):,} frames, neighbours together."
            )
        backwards = sum(map(_backwards, self.reading.messages))
        if backwards:
            notes.append(
                f"By the ranks' clocks {plural(backwards, 'message')} arrived before "
                "being sent; they are drawn as recorded."
            )
        return notes

    @property
    def full_scale(self) -> float:
        """The amount that fills a bar: the bound, or the most that a rank sends."""
        most = max(self.frames[-1].sent, default=0)
        return max(most, self.bound[0] if self.bound else 0) or 1

    @property
    def complete_at_end(self) -> bool:
        """True if every rank ends with every contribution of the start."""
        shares = self.reading.trace.shares
        last = self.frames[-1].tables
        return all(counts == shares.complete(key[1]) for key, counts in last.items())

    def failed_step(self) -> int:
        """Return the step in which a run ended with unfinished calls, 0 if none did."""
        broken = [number for number, frame in enumerate(self.frames) if frame.broken]
        return broken[0] if broken else 0

    def first_shown(self) -> int:
        """Return the step at which its player opens: the failure, if there is one."""
        return self.failed_step()

    def alt(self) -> str:
        """Return the text alternative of the animation."""
        last = self.frames[-1]
        said = [f"Player of {headline(self.reading)}."]
        if self.title:
            said.insert(0, f"{self.title}.")
        if len(self.frames) > 1:
            sent = {readable_bytes(count) for count in last.sent}
            if len(sent) == 1 and any(last.sent):
                said.append(f"Every rank sends {sent.pop()}.")
            if self.bound:
                said.append(f"{self.bound[1]}: {readable_bytes(self.bound[0])} a rank.")
        for frame in self.frames[1:13]:
            said.append(f"{frame.title}: {frame.text}")
        if len(self.frames) > 13:
            said.append(f"And {len(self.frames) - 13} more frames.")
        return " ".join([*said, *self.notes])


def _backwards(message):
    send, recv = message
    return bool(send and recv and recv.end is not None and recv.end < send.start)


def _shorts(shown_steps):
    """Return a short label for each step: its phase where that begins, or its step."""
    shorts, first = [], 0
    while first < len(shown_steps):
        last, phase = first, shown_steps[first].phase
        while last < len(shown_steps) and shown_steps[last].phase == phase:
            last += 1
        run = shown_steps[first:last]
        if phase and all(stop.step for stop in run):
            own = in_common([stop.step for stop in run])[1]
            between = ", " if phase[-1].isdigit() else " "
            shorts += [f"{phase}{between}{own[0]}", *own[1:]]
        elif phase:
            shorts += [phase] * len(run)
        else:
            shorts += [str(stop.rounds[0]) for stop in run]
        first = last
    return shorts
