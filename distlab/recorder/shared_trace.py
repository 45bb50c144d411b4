"""The kernel's side of the records: it reads them, and builds a trace from them."""

import math
import mmap
import os
import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from itertools import chain

from distlab.recorder.layout import (
    CELL_BYTES,
    EVENT_ROW,
    FIRST_VERSION,
    GROUP_BITS,
    KINDS,
    LAST_VERSION,
    NOW,
    NOW_ROW,
    READ,
    STATES,
    WRITTEN,
    BlockLayout,
    Notes,
    Now,
)
from distlab.trace import Event, Trace

__all__ = ["SharedTrace"]

_RECENT_PIECES = 20  # of events that came together


class SharedTrace(Notes):
    """The kernel's view of every rank's notes.

    `descriptor` is the shared block's, to be passed to each rank. layout: another one
        than a world's.
    began: start of the trace, by the clock that its events are timed with.
    presumed: states of ranks that are blocked without a record of it.
    offsets_s: by rank, what to add to its clock to have this process's.
    clock_error_s: how wrong the largest of these may be.
    regroup_copied: called as `regroup`, if the block is a copy of blocks elsewhere.
    recent_only: True to drop all but the last events, in a long run.
    """

    recent_only = False

    def __init__(
        self, world_size: int, descriptor: int, layout: BlockLayout | None = None
    ):
        layout = layout or BlockLayout(world_size)
        os.ftruncate(descriptor, layout.total)
        super().__init__(mmap.mmap(descriptor, layout.total), layout, world_size)
        self._clock, self.began = time.monotonic, 0.0
        self._read = [0] * world_size
        self._pieces = [[] for _ in range(world_size)]
        self.presumed: dict[int, Now] = {}
        self.offsets_s, self.clock_error_s = [0.0] * world_size, 0.0
        self.regroup_copied = None

    def begin(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Start a new trace with its own clock; it holds the events from here on."""
        self.drain()
        self._clock, self.presumed = clock, {}
        self._pieces = [[] for _ in range(self.world_size)]
        self.began = clock()

    def regroup(self, regions: Sequence[int], fresh: Container[int] = ()) -> None:
        """Give rank r region `regions[r]` from here on; no rank may be writing.

        Messages and collectives are counted anew. A fresh region is one of a new
        process, and is cleared.
        """
        self.drain()
        self.world_size = len(regions)
        self._layout = self._layout.among(regions)
        self._words, self._groups = {}, {}
        for rank, region in enumerate(regions):
            base, layout = self._layout.base(rank), self._layout
            kept = range(WRITTEN, READ + CELL_BYTES)
            kept = kept if region not in fresh else range(0)
            counts = (0, kept.start), (kept.stop, layout.posts)
            for begin, stop in (*counts, (layout.calls, layout.events)):
                self._memory[base + begin : base + stop] = bytes(stop - begin)
        if self.regroup_copied:
            self.regroup_copied(regions, fresh)
        everyone = range(self.world_size)
        self._read = [self._counter(rank, READ) for rank in everyone]
        self._pieces = [[] for _ in everyone]

    def write(self, pieces: Iterable[tuple[int, bytes]]) -> None:
        """Copy what ranks elsewhere have noted: bytes, each with their offset."""
        for at, piece in pieces:
            self._memory[at : at + len(piece)] = piece
        self.drain()

    def now(self, rank: int) -> Now:
        """Return the current state of `rank`."""
        if rank in self.presumed:
            return self.presumed[rank]
        at = self._layout.base(rank) + NOW
        for _ in range(1000):  # written front to back: whole once both ends agree
            last = self._counter(rank, LAST_VERSION)
            what, *where, slot, step, since = NOW_ROW.unpack_from(self._memory, at)
            if last == self._counter(rank, FIRST_VERSION):
                break  # never, if the rank was killed while it wrote
        label = self.word(rank, step & 0xFFFFFFFF)
        state, kind = STATES[what >> 8], KINDS[what & 0xFF]
        group = self._group_in(rank, slot)
        return Now(state, kind, *where, step >> 32, label, since, group)

    def _group_in(self, rank, slot):
        """Return the group that has this slot in the rank's table."""
        if not slot:
            return ""
        return next((g for g, s in self._slots_of(rank).items() if s == slot), "")

    def drain(self) -> None:
        """Copy the finished events, so that the ranks have room for more."""
        for rank in range(self.world_size):
            base = self._layout.base(rank)
            written, kept = self._counter(rank, WRITTEN), self._layout.kept_events
            self._read[rank] = max(self._read[rank], written - kept)
            while self._read[rank] < written:
                first = self._read[rank] % kept
                count = min(written - self._read[rank], kept - first)
                at = base + self._layout.events + first * EVENT_ROW.size
                piece = self._memory[at : at + count * EVENT_ROW.size]
                self._pieces[rank].append(piece)
                self._read[rank] += count
            self._set_counter(rank, READ, written)
            if self.recent_only:
                del self._pieces[rank][:-_RECENT_PIECES]

    def trace(
        self, *, cut: bool = False, ended: Mapping[int, tuple] | None = None
    ) -> Trace:
        """Return the events since `begin`, and the unfinished call of a blocked rank.

        cut: the world is being stopped now, unfinished.
        ended: rank -> (time on the system's monotonic clock, label) of ended ranks; it
        adds a fault for those whose own records have none.
        """
        self.drain()
        events = []
        for rank in range(self.world_size):
            rows = chain.from_iterable(map(EVENT_ROW.iter_unpack, self._pieces[rank]))
            events += [self._event(rank, *row) for row in rows]
            for each in self._unfinished(rank):
                same = rank, each.start, each.kind  # broken off, and written as such
                if all((e.rank, e.start, e.kind) != same for e in events):
                    events.append(each)
        struck = {
            event.rank
            for event in events
            if event.kind == "fault" and event.label != "corrupt"
        }
        for rank in (ended or {}).keys() - struck:
            when, how = ended[rank]
            when -= self.began
            events.append(Event(rank, when, when, "fault", None, 0, 0, how))
        cut_s = self._clock() - self.began if cut else None
        error_s = self.clock_error_s
        return Trace(self.world_size, events, cut_s, clock_error_s=error_s)

    def _event(self, rank, start, end, kind, peer, size, step, place):
        began = self.began - self.offsets_s[rank]
        return Event(
            rank,
            start - began,
            None if math.isnan(end) else end - began,
            KINDS[kind & (1 << GROUP_BITS) - 1],
            None if peer < 0 else peer,
            size,
            step,
            self.word(rank, place),
            self._group_in(rank, kind >> GROUP_BITS),
        )

    def _unfinished(self, rank):
        now = self.now(rank)
        if now.state != "blocked":
            return []
        if now.kind in ("barrier", "collective"):
            sides = [(now.kind, None, 0)]
        else:
            sides = [
                ("send", now.send_to, now.send_bytes),
                ("recv", now.recv_from, now.recv_bytes),
            ]
        start = now.since - self.began + self.offsets_s[rank]
        return [
            Event(rank, start, None, kind, peer, size, now.step, now.label, now.group)
            for kind, peer, size in sides
            if peer != -1
        ]

    def close(self) -> None:
        """Release the memory."""
        self._cells.release()
        self._memory.close()
