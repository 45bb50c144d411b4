"""The rank's side of the records: it writes them during the run."""

import mmap
import os
import struct
import sys
import threading
import time
import zlib
from collections.abc import Sequence

from distlab.recorder.layout import (
    CELL_BYTES,
    EVENT_ROW,
    FIRST_VERSION,
    FLAGS,
    GROUP_BITS,
    GROUPS,
    KINDS,
    LAST_VERSION,
    MOST_GROUPS,
    NOW,
    NOW_ROW,
    PASSES,
    PID,
    READ,
    STATES,
    UNKNOWN_SIZE,
    WRITTEN,
    BlockLayout,
    Notes,
)

__all__ = ["Recorder"]

_STATE_CODES = {state: code << 8 for code, state in enumerate(STATES)}
_KIND_CODES = {kind: code for code, kind in enumerate(KINDS)}


class Recorder(Notes):
    """The writer of one rank's records.

    `descriptor` is the shared block's; without one the records stay in this process,
    or go into the memory of `beside`, which this process has mapped.

    Invariant: one thread at a time is in a call of Comm, and only that one writes; but
    events and words may come from others too, such as marks, and so have a lock.

    layout: another one than a world's. overwrite: replace the oldest events, rather
    than wait for a reader, once the ring is full.
    """

    def __init__(
        self,
        rank: int,
        world_size: int,
        descriptor: int = -1,
        *,
        beside: Notes | None = None,
        layout: BlockLayout | None = None,
        overwrite: bool = False,
    ):
        layout = layout or BlockLayout(world_size)
        memory = None if beside else mmap.mmap(descriptor, layout.total)
        super().__init__(memory, layout, world_size, beside)
        self.rank = rank
        self._base = layout.base(rank)
        self._kept_posts, self._kept_events = layout.kept_posts, layout.kept_events
        self._room = sys.maxsize if overwrite else layout.kept_events
        self._events = self._base + layout.events
        self._first_version = (self._base + FIRST_VERSION) // CELL_BYTES
        self._last_version = (self._base + LAST_VERSION) // CELL_BYTES
        self._written_cell = (self._base + WRITTEN) // CELL_BYTES
        self._read_cell = (self._base + READ) // CELL_BYTES
        self._places = {"": 0}
        self._tags, self._slots, self._sides = {}, {"": 0}, {}
        self._words_end = 4
        self._written = 0
        self._version = 0
        self._pen, self._waits_pen = threading.Lock(), threading.Lock()
        self._waits = {}
        self.step = self.begun = 0
        self.place("…")  # stands for texts that no longer fit

    def regroup(self, rank: int, regions: Sequence[int]) -> None:
        """Become `rank` among ranks with these regions; its own region stays."""
        self.rank, self.world_size = rank, len(regions)
        self._layout = self._layout.among(regions)
        self._words, self._groups, self._slots = {}, {}, {"": 0}
        self._sides = {}

    def begin(self) -> None:
        """Start a new call of the world: steps count from 1 again."""
        self.step, self.begun = 0, self.begun + 1
        self.now("running")

    def now(
        self,
        state: str,
        kind: str = "mark",
        *,
        send: tuple[int, int] = (-1, -1),
        recv: tuple[int, int] = (-1, -1),
        call: int = -1,
        group: str = "",
        sizes: tuple[int, int] = (0, 0),
        label: str = "",
        since: float = 0.0,
        lane: str | int = "",
    ) -> None:
        """Record this rank's state from here on.

        `send` and `recv` are (peer, number), `sizes` those of the two in bytes. lane:
        the blocked thread of this rank, where several may be. A rank whose threads are
        blocked in several calls is in none of them: each may free another.
        """
        code, slot = _KIND_CODES[kind], self._slots[group]
        step_and_place = self.step << 32 | self.place(label)
        row = (code, *send, *recv, call, *sizes, slot, step_and_place, since)
        with self._waits_pen:
            if state == "blocked":
                self._waits[lane] = row
            else:
                self._waits.clear()
            self._write("several" if len(self._waits) > 1 else state, row)

    def _write(self, state, row):
        """Write a note.

        Invariant: the version is written first and last, so that a reader that finds
        both equal has read a whole note.
        """
        self._version += 1
        code, *rest = row
        self._cells[self._first_version] = self._version
        NOW_ROW.pack_into(
            self._memory, self._base + NOW, _STATE_CODES[state] | code, *rest
        )
        self._cells[self._last_version] = self._version

    def running(self, lane: str | int = "") -> None:
        """Note that this rank, or one of its threads, is no longer blocked."""
        with self._waits_pen:
            self._waits.pop(lane, None)
            if len(self._waits) == 1:
                self._write("blocked", *self._waits.values())
            elif not self._waits:
                self._cells[self._first_version + 1] = _STATE_CODES["running"]

    def offer(self, peer: int, way: int, size: int, type_: str, group: str = "") -> int:
        """Note this rank's side of its next message with `peer`; return its number.

        A `size` of UNKNOWN_SIZE fits any other.
        """
        cells = self._cells
        count, posts = self._cells_of(self.rank, peer, way, self._slots[group])
        number = cells[count] + 1
        at = posts + 2 * (number % self._kept_posts)
        cells[at] = size
        cells[at + 1] = self._tags.get(type_) or self._tag(type_)
        cells[count] = number
        return number

    def fits(self, peer: int, way: int, number: int, group: str = "") -> bool:
        """Return True if both sides of a message agree, or one of them is not known.

        Each side stores its last posts, the layout's `kept_posts`.
        """
        cells, there = self._cells, self._slots_of(peer).get(group) if group else 0
        if there is None:
            return True
        count, posts = self._cells_of(peer, self.rank, 1 - way, there)
        ahead = cells[count] - number
        if (
            not 0 <= ahead < self._kept_posts - 1
        ):  # not posted yet, or perhaps overwritten
            return True
        theirs = posts + 2 * (number % self._kept_posts)
        _, posts = self._cells_of(self.rank, peer, way, self._slots[group])
        mine = posts + 2 * (number % self._kept_posts)
        if cells[mine + 1] >> 32 != cells[theirs + 1] >> 32:
            return False
        sizes = {cells[mine], cells[theirs]}
        return len(sizes) == 1 or UNKNOWN_SIZE in sizes

    def _tag(self, type_):
        """Return a type's tag: a checksum equal on all ranks, and the name's offset."""
        tag = zlib.crc32(type_.encode()) << 32 | self.place(type_)
        self._tags[type_] = tag
        return tag

    def _cells_of(self, *side):
        """Return the cell that counts a side's messages, and the first of its posts."""
        found = self._sides.get(side)
        if found is None:
            rank, peer, way, slot = side
            first = self._layout.post(rank, peer, way, 0, slot)
            found = self._layout.count(*side), first
            self._sides[side] = found
        return found

    def knows(self, group: str) -> bool:
        """Return True if a group has a slot in the records; allocate it if needed."""
        slot = len(self._slots)
        if group not in self._slots and slot < MOST_GROUPS:
            self._slots[group] = slot
            self._cells[self._layout.group(self.rank, slot)] = self.place(group)
            self._set_counter(self.rank, GROUPS, slot)
        return group in self._slots

    def enter_call(self, words: str, group: str = "") -> int:
        """Note that this rank enters a group's next collective; return its number."""
        slot = self._slots[group]
        count = self._layout.group(self.rank, slot) + 1
        number = self._cells[count] + 1
        self._cells[self._layout.call(self.rank, slot, number)] = self.place(words)
        self._cells[count] = number
        return number

    def begin_pass(self) -> None:
        """Count a backward pass in which there are collectives."""
        self._set_counter(self.rank, PASSES, self.passes(self.rank) + 1)

    def note_pid(self) -> None:
        """Note this process as its rank."""
        self._set_counter(self.rank, PID, os.getpid())

    def raise_flag(self, flag: int) -> None:
        """Set THREADED or DESTROYED."""
        self._set_counter(self.rank, FLAGS, self.flags(self.rank) | flag)

    def event(
        self,
        kind: str,
        start: float,
        end: float,
        peer: int = -1,
        size: int = 0,
        label: str = "",
        step: int = -1,
        group: str = "",
    ) -> None:
        """Note an event of this step; waits for the kernel if the ring is full.

        An `end` of nan marks a cancelled one. A step below 0 is the present one.
        """
        step = self.step if step < 0 else step
        self.events([(kind, peer, size)], start, end, label, step, group)

    def events(
        self,
        sides: Sequence[tuple[str, int, int]],
        start: float,
        end: float,
        label: str,
        step: int,
        group: str,
    ) -> None:
        """Note events that began and ended together, each a (kind, peer, size)."""
        place = self.place(label) if label else 0
        slot = self._slots[group] << GROUP_BITS
        with self._pen:
            for kind, peer, size in sides:
                while self._written - self._cells[self._read_cell] >= self._room:
                    time.sleep(0.001)
                EVENT_ROW.pack_into(
                    self._memory,
                    self._events + self._written % self._kept_events * EVENT_ROW.size,
                    start, end, _KIND_CODES[kind] | slot, peer, size, step, place,
                )  # fmt: skip
                self._written += 1
                self._cells[self._written_cell] = self._written

    def point(self, kind: str, label: str) -> None:
        """Note an event that takes no time."""
        now = time.monotonic()
        self.events([(kind, -1, 0)], now, now, label, self.step, "")

    def place(self, text: str) -> int:
        """Return the offset of `text` in this rank's words; store it first if new."""
        place = self._places.get(text)
        return self._keep(text) if place is None else place

    def _keep(self, text):
        encoded = text.encode(errors="replace")[:4096]
        with self._pen:
            if self._words_end + 4 + len(encoded) > self._layout.words_bytes:
                return self._places["…"]
            place = self._words_end
            at = self._base + self._layout.words + place
            row = f"<I{len(encoded)}s"
            struct.pack_into(row, self._memory, at, len(encoded), encoded)
            self._words_end += -(-(4 + len(encoded)) // 8) * 8
            self._places[text] = place
        return place
