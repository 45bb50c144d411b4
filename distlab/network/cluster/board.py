"""`Board`: memory that the kernel, the switch and the nodes share.

    generations    one number for each link, raised by the switch when it cuts the link
    slots          one for each node: since when it has been at work, and on what

A node compares a message's generation with the link's as it takes it, so that what had
already reached its socket when a split began is lost with the rest.
"""

import mmap
import os
import struct

from distlab.processes import anonymous_file

__all__ = ["Board"]

_GENERATION = struct.Struct("<I")
_SINCE, _WORDS = struct.Struct("<d"), struct.Struct("<H")
_SLOT_BYTES = 256
_MOST_WORDS = _SLOT_BYTES - _SINCE.size - _WORDS.size


class Board:
    """The board of a cluster of `count` nodes, in the file of a descriptor."""

    def __init__(self, descriptor: int, count: int):
        self.descriptor, self.count = descriptor, count
        self._slots = -(-count * count * _GENERATION.size // 8) * 8
        size = self._slots + count * _SLOT_BYTES
        if os.fstat(descriptor).st_size < size:
            os.ftruncate(descriptor, size)
        self._memory = mmap.mmap(descriptor, size)

    @classmethod
    def new(cls, count: int) -> "Board":
        """Return a board in memory that has no name."""
        return cls(anonymous_file("board"), count)

    def generation(self, src: int, dst: int) -> int:
        """Return how often the link from `src` to `dst` has been cut."""
        at = (src * self.count + dst) * _GENERATION.size
        return _GENERATION.unpack_from(self._memory, at)[0]

    def cut(self, src: int, dst: int) -> None:
        """Raise the link's generation: messages of an earlier one are lost."""
        at = (src * self.count + dst) * _GENERATION.size
        _GENERATION.pack_into(self._memory, at, self.generation(src, dst) + 1)

    def begins(self, node: int, since_s: float, words: str) -> None:
        """Note that a node is now at work on what the words say."""
        at = self._slots + node * _SLOT_BYTES
        said = words.encode(errors="replace")[:_MOST_WORDS]
        _WORDS.pack_into(self._memory, at + _SINCE.size, len(said))
        start = at + _SINCE.size + _WORDS.size
        self._memory[start : start + len(said)] = said
        _SINCE.pack_into(self._memory, at, since_s)

    def ends(self, node: int) -> None:
        """Note that a node is done with it."""
        _SINCE.pack_into(self._memory, self._slots + node * _SLOT_BYTES, 0.0)

    def at_work(self, node: int) -> tuple[float, str] | None:
        """Return since when a node is at work and on what; None if it waits."""
        at = self._slots + node * _SLOT_BYTES
        since = _SINCE.unpack_from(self._memory, at)[0]
        if not since:
            return None
        size = _WORDS.unpack_from(self._memory, at + _SINCE.size)[0]
        start = at + _SINCE.size + _WORDS.size
        return since, self._memory[start : start + size].decode(errors="replace")

    def close(self) -> None:
        """Give the memory back."""
        self._memory.close()
        os.close(self.descriptor)
