"""The changes of a shared block, for a copy of it on another machine.

    rank ─ Recorder ─▶ block ─ NotesReader.changes ─▶ bytes ─▶ SharedTrace.write ─▶ copy

A copy may be late, but is never wrong about a rank that waits: counters only grow and
are read before what they count, and a rank that waits for a message which has not been
posted goes on waiting until it is.
"""

import os
import struct
from collections.abc import Iterator

from distlab.recorder.layout import (
    EVENT_ROW,
    FIRST_VERSION,
    KEPT_EVENTS,
    LAST_VERSION,
    READ,
    WRITTEN,
    BlockLayout,
)

__all__ = ["NotesReader"]

_PAGE = 4096
_CELL = struct.Struct("<Q")
_TORN_READS = 10


class NotesReader:
    """A reader of what ranks have written into a shared block since it last read.

    It also empties the rings of events, so that the ranks have room for more.
    """

    def __init__(self, descriptor: int, world_size: int):
        self._descriptor, self._layout = descriptor, BlockLayout(world_size)
        os.ftruncate(descriptor, self._layout.total)
        self._pages, self._read, self._words = {}, {}, {}

    def changes(self, region: int) -> list[tuple[int, bytes]]:
        """Return the changed pieces of a region, each with its offset in the block."""
        base = self._layout.base(region)
        first = self._whole_now(base)
        found = [(base, first)] if self._is_new(base, first) else []
        found += self._changed(base + _PAGE, base + self._layout.events)
        written = _CELL.unpack_from(first, WRITTEN)[0]
        found += self._events(region, base, written)
        start = self._words.get(region, base + self._layout.words) // _PAGE * _PAGE
        words = self._changed(start, base + self._layout.stride)
        if words:
            self._words[region] = words[-1][0]
        return found + words

    def forget(self, region: int, *, fresh: bool) -> None:
        """Note that a region and its copy were cleared; send all that it has next.

        fresh: it is another process's now, so events and words begin anew, too.
        """
        base = self._layout.base(region)
        end = base + self._layout.stride
        self._pages = {at: p for at, p in self._pages.items() if not base <= at < end}
        if fresh:
            self._read.pop(region, None)
            self._words.pop(region, None)

    def _whole_now(self, base):
        """Return the first page, read again if the rank was just writing its state."""
        for _ in range(_TORN_READS):
            page = os.pread(self._descriptor, _PAGE, base)
            first, last = (
                _CELL.unpack_from(page, at)[0] for at in (FIRST_VERSION, LAST_VERSION)
            )
            if first == last:
                break
        return page

    def _changed(self, start, stop):
        """Return the changed pages of a range that hold anything."""
        found = []
        for at in self._used(start, stop):
            page = os.pread(self._descriptor, min(_PAGE, stop - at), at)
            if self._is_new(at, page):
                found.append((at, page))
        return found

    def _is_new(self, at, page):
        new = self._pages.get(at) != page
        if new:
            self._pages[at] = page
        return new

    def _used(self, start, stop) -> Iterator[int]:
        """Yield the offsets of the pages that have ever been written."""
        at = start
        while at < stop:
            try:
                at = max(at, os.lseek(self._descriptor, at, os.SEEK_DATA))
                end = os.lseek(self._descriptor, at, os.SEEK_HOLE)
            except OSError:
                return  # no data from here on
            yield from range(at, min(end, stop), _PAGE)
            at = end

    def _events(self, region, base, written):
        """Return the new rows of a ring, and free their places."""
        read, found = self._read.get(region, 0), []
        while read < written:
            place = read % KEPT_EVENTS
            count = min(written - read, KEPT_EVENTS - place)
            at = base + self._layout.events + place * EVENT_ROW.size
            row_bytes = count * EVENT_ROW.size
            found.append((at, os.pread(self._descriptor, row_bytes, at)))
            read += count
        if found:
            self._read[region] = read
            os.pwrite(self._descriptor, _CELL.pack(read), base + READ)
        return found
