"""Where each rank notes what it does, in memory that outlives it.

    rank 0 ─ Recorder ─▶ ┌────────────── one shared block ──────────────┐
    rank 1 ─ Recorder ─▶ │ for each rank: now, posts, events and words  │
    rank 2 ─ Recorder ─▶ └──────────────────────────────────────────────┘
                                   ▲ read by the kernel's Blackboard

A rank writes a note with one memory copy and no system call; the kernel reads it
whenever it likes, also after the rank was killed. Each rank writes only its own
region, so there are no locks. Three kinds of note:

- *now*: whether the rank is running, blocked (in what, waiting for whom) or done;
- *posts*: for each peer how many messages it has offered and asked for, and the size
  and type of the latest. Message k meets its partner when both sides have posted k,
  so comparing two counters tells a message in flight from one that will never come;
- *events*: finished events, in a ring that the kernel empties as the run goes on.
"""

import mmap
import os
import struct
import time
from typing import NamedTuple

from distlab.trace import Event, Trace

__all__ = ["Blackboard", "Now", "Post", "Recorder"]

KINDS = ("send", "recv", "sendrecv", "barrier", "collective", "mark", "fault")
STATES = ("starting", "running", "blocked", "done", "raised")
OUT, IN = 0, 1

_NOW = struct.Struct("<QqqqqqqqqdQ")
_EVENT = struct.Struct("<ddiiqii")
_POST = struct.Struct("<qQ")
_COUNT = struct.Struct("<Q")

_EVENTS = 2**16
_WORDS_BYTES = 2**20
_KEPT_POSTS = 16
_KEPT_CALLS = 64

_FLAGS, _WRITTEN, _READ, _WORDS_END, _CALLS, _STEP = range(128, 128 + 6 * 8, 8)
_AFTER_COUNTERS = 256

THREADED, DESTROYED = 1, 2


class Now(NamedTuple):
    """What a rank is doing at this moment.

    state: one of STATES; label, bytes and step as in `Event`.
    kind: as in `Event`, or "sendrecv".
    send_to, send_number: the message it waits to hand over, or -1.
    recv_from, recv_number: the message it waits to be given, or -1.
    call: the number of the collective it waits in, or -1.
    since: seconds on the system's monotonic clock.
    """

    state: str
    kind: str
    send_to: int
    send_number: int
    recv_from: int
    recv_number: int
    call: int
    bytes: int
    step: int
    label: str
    since: float


class Post(NamedTuple):
    """One side of a message: its number between the pair, size in bytes, and type."""

    number: int
    bytes: int
    type: str

    def describe(self) -> str:
        """Return size and type in words."""
        return (
            "an object"
            if self.type == "object"
            else f"{self.bytes} bytes of {self.type}"
        )


class _Layout:
    """Where each note lies in the shared block."""

    def __init__(self, world_size):
        self.world_size = world_size
        pairs = 2 * world_size
        self.counts = _AFTER_COUNTERS
        self.posts = self.counts + pairs * _COUNT.size
        self.calls = self.posts + pairs * _KEPT_POSTS * _POST.size
        self.events = self.calls + _KEPT_CALLS * _COUNT.size
        self.words = self.events + _EVENTS * _EVENT.size
        end = self.words + _WORDS_BYTES
        self.stride = -(-end // mmap.PAGESIZE) * mmap.PAGESIZE
        self.total = world_size * self.stride

    def count(self, rank, peer, way):
        return rank * self.stride + self.counts + (2 * peer + way) * _COUNT.size

    def post(self, rank, peer, way, number):
        slot = (2 * peer + way) * _KEPT_POSTS + number % _KEPT_POSTS
        return rank * self.stride + self.posts + slot * _POST.size

    def call(self, rank, number):
        return rank * self.stride + self.calls + number % _KEPT_CALLS * _COUNT.size


class _Notes:
    """What both sides read."""

    def __init__(self, memory, world_size):
        self._memory = memory
        self._layout = _Layout(world_size)
        self._words = {}
        self.world_size = world_size

    def posted(self, rank: int, peer: int, way: int) -> int:
        """Return how many messages `rank` has offered to (OUT) or asked of (IN) `peer`."""
        return _COUNT.unpack_from(self._memory, self._layout.count(rank, peer, way))[0]

    def post(self, rank: int, peer: int, way: int, number: int) -> Post | None:
        """Return that side of message `number`, or None if not posted or too long ago."""
        if self.posted(rank, peer, way) < number:
            return None
        at = self._layout.post(rank, peer, way, number)
        size, word = _POST.unpack_from(self._memory, at)
        if self.posted(rank, peer, way) - number >= _KEPT_POSTS - 1:
            return None  # its place may have been written over while it was read
        return Post(number, size, self.word(rank, word))

    def calls(self, rank: int) -> int:
        """Return how many collectives `rank` has entered."""
        return self._counter(rank, _CALLS)

    def call(self, rank: int, number: int) -> str:
        """Return what `rank` called as its `number`-th collective: name and signature."""
        at = self._layout.call(rank, number)
        return self.word(rank, _COUNT.unpack_from(self._memory, at)[0])

    def flags(self, rank: int) -> int:
        """Return THREADED and DESTROYED, as far as they hold for `rank`."""
        return self._counter(rank, _FLAGS)

    def word(self, rank: int, place: int) -> str:
        """Return the text kept at `place` in the rank's words; 0 is the empty text."""
        if not place:
            return ""
        if (rank, place) not in self._words:
            at = rank * self._layout.stride + self._layout.words + place
            (length,) = struct.unpack_from("<I", self._memory, at)
            text = self._memory[at + 4 : at + 4 + length].decode(errors="replace")
            self._words[rank, place] = text
        return self._words[rank, place]

    def _counter(self, rank, which):
        return _COUNT.unpack_from(self._memory, rank * self._layout.stride + which)[0]


class Recorder(_Notes):
    """One rank's pen.

    `descriptor` is the shared block's; without one the notes stay in this process.
    Only the rank's main thread writes.
    """

    def __init__(self, rank: int, world_size: int, descriptor: int = -1):
        layout = _Layout(world_size)
        super().__init__(mmap.mmap(descriptor, layout.total), world_size)
        self.rank = rank
        self._base = rank * layout.stride
        self._places = {"": 0}
        self._words_end = 4
        self._written = 0
        self._version = 0
        self.step = 0

    def begin(self) -> None:
        """Start a new call of the world: steps count from 1 again."""
        self.step = 0
        self.now("running")

    def now(
        self,
        state,
        kind="mark",
        send=(-1, -1),
        recv=(-1, -1),
        call=-1,
        size=0,
        label="",
        since=0.0,
    ) -> None:
        """Note what this rank does from here on."""
        self._version += 1
        version, place = self._version, self.place(label)
        _NOW.pack_into(
            self._memory, self._base,
            version, STATES.index(state) << 8 | KINDS.index(kind), *send, *recv, call, size,
            self.step << 32 | place, since, version,
        )  # fmt: skip

    def offer(self, peer: int, way: int, size: int, type_: str) -> int:
        """Note this rank's side of its next message with `peer`; return its number."""
        layout, memory, rank = self._layout, self._memory, self.rank
        count_at = layout.count(rank, peer, way)
        number = _COUNT.unpack_from(memory, count_at)[0] + 1
        at = layout.post(rank, peer, way, number)
        _POST.pack_into(memory, at, size, self.place(type_))
        _COUNT.pack_into(memory, count_at, number)
        return number

    def enter_call(self, words: str) -> int:
        """Note that this rank enters its next collective; return its number."""
        number = self.calls(self.rank) + 1
        at = self._layout.call(self.rank, number)
        _COUNT.pack_into(self._memory, at, self.place(words))
        _COUNT.pack_into(self._memory, self._base + _CALLS, number)
        return number

    def raise_flag(self, flag: int) -> None:
        """Set THREADED or DESTROYED."""
        _COUNT.pack_into(
            self._memory, self._base + _FLAGS, self.flags(self.rank) | flag
        )

    def event(
        self, kind: str, start: float, end: float, peer=-1, size=0, label=""
    ) -> None:
        """Note a finished event; waits for the kernel if the ring is full."""
        while self._written - self._counter(self.rank, _READ) >= _EVENTS:
            time.sleep(0.001)
        at = self._base + self._layout.events + self._written % _EVENTS * _EVENT.size
        place = self.place(label) if label else 0
        _EVENT.pack_into(
            self._memory,
            at,
            start,
            end,
            KINDS.index(kind),
            peer,
            size,
            self.step,
            place,
        )
        self._written += 1
        _COUNT.pack_into(self._memory, self._base + _WRITTEN, self._written)

    def point(self, kind: str, label: str) -> None:
        """Note an event that takes no time."""
        now = time.monotonic()
        self.event(kind, now, now, label=label)

    def place(self, text: str) -> int:
        """Return where `text` is kept in this rank's words, keeping it first if new."""
        place = self._places.get(text)
        if place is None:
            encoded = text.encode(errors="replace")[:4096]
            if self._words_end + 4 + len(encoded) > _WORDS_BYTES:
                return self._places.get("…", 0)
            place, at = (
                self._words_end,
                self._base + self._layout.words + self._words_end,
            )
            struct.pack_into(
                f"<I{len(encoded)}s", self._memory, at, len(encoded), encoded
            )
            self._words_end += -(-(4 + len(encoded)) // 8) * 8
            self._places[text] = place
        return place


class Blackboard(_Notes):
    """The kernel's view of every rank's notes.

    `descriptor` is the shared block's, to be given to each rank.
    """

    def __init__(self, world_size: int, descriptor: int):
        layout = _Layout(world_size)
        os.ftruncate(descriptor, layout.total)
        super().__init__(mmap.mmap(descriptor, layout.total), world_size)
        self._began = 0.0
        self._read = [0] * world_size
        self._pieces = [[] for _ in range(world_size)]

    def begin(self) -> None:
        """Start a new trace: events from here on, and their clock, belong to it."""
        self.drain()
        self._pieces = [[] for _ in range(self.world_size)]
        self._began = time.monotonic()

    def now(self, rank: int) -> Now:
        """Return what `rank` is doing."""
        at = rank * self._layout.stride
        for _ in range(1000):  # written front to back: whole once both ends agree
            (last,) = _COUNT.unpack_from(self._memory, at + _NOW.size - _COUNT.size)
            _, what, *where, size, step, since, _ = _NOW.unpack_from(self._memory, at)
            if last == _COUNT.unpack_from(self._memory, at)[0]:
                break  # never, if the rank was killed while it wrote
        label = self.word(rank, step & 0xFFFFFFFF)
        state, kind = STATES[what >> 8], KINDS[what & 0xFF]
        return Now(state, kind, *where, size, step >> 32, label, since)

    def drain(self) -> None:
        """Take over the finished events, so that ranks find room for more."""
        for rank in range(self.world_size):
            base = rank * self._layout.stride
            written = self._counter(rank, _WRITTEN)
            while self._read[rank] < written:
                first = self._read[rank] % _EVENTS
                count = min(written - self._read[rank], _EVENTS - first)
                at = base + self._layout.events + first * _EVENT.size
                self._pieces[rank].append(self._memory[at : at + count * _EVENT.size])
                self._read[rank] += count
            _COUNT.pack_into(self._memory, base + _READ, written)

    def trace(self) -> Trace:
        """Return the events since `begin`, and for a blocked rank what it is in."""
        self.drain()
        events = []
        for rank in range(self.world_size):
            for piece in self._pieces[rank]:
                events += [self._event(rank, *row) for row in _EVENT.iter_unpack(piece)]
            events += self._unfinished(rank)
        return Trace(self.world_size, events)

    def _event(self, rank, start, end, kind, peer, size, step, place):
        return Event(
            rank, start - self._began, end - self._began, KINDS[kind],
            None if peer < 0 else peer, size, step, self.word(rank, place),
        )  # fmt: skip

    def _unfinished(self, rank):
        now = self.now(rank)
        if now.state != "blocked":
            return []
        if now.kind in ("barrier", "collective"):
            sides = [(now.kind, None)]
        else:
            sides = [("send", now.send_to), ("recv", now.recv_from)]
        return [
            Event(
                rank,
                now.since - self._began,
                None,
                kind,
                peer,
                now.bytes,
                now.step,
                now.label,
            )
            for kind, peer in sides
            if peer != -1
        ]

    def close(self) -> None:
        """Give the memory back."""
        self._memory.close()
