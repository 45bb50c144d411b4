"""Partial orders: the pairs of numbers of which one must precede the other."""

from collections.abc import Iterable, Iterator

__all__ = ["PartialOrder", "bits"]


class PartialOrder:
    """A partial order of the numbers below `size`, kept as the predecessors of each.

    before[n] has a bit for every number that precedes n; sorted has all of them in a
    topological order. Both are as `close` last found them.
    """

    def __init__(self, size: int, pairs: Iterable[tuple[int, int]] = ()):
        self.direct = [0] * size
        for one, two in pairs:
            self.direct[two] |= 1 << one
        self.before = [0] * size
        self.sorted = list(range(size))

    def add(self, one: int, two: int) -> None:
        """Put one number before another; `close` derives what follows from that."""
        self.direct[two] |= 1 << one

    def copy(self) -> "PartialOrder":
        """Return a copy that can be extended alone."""
        other = PartialOrder(0)
        other.direct, other.before = list(self.direct), list(self.before)
        other.sorted = self.sorted
        return other

    def close(self) -> bool:
        """Find all predecessors of each number; return False if there is a cycle."""
        follow, waits = [[] for _ in self.direct], []
        for number, direct in enumerate(self.direct):
            waits.append(direct.bit_count())
            for earlier in bits(direct):
                follow[earlier].append(number)
        ready = [number for number, count in enumerate(waits) if not count]
        for number in ready:
            before = self.direct[number]
            for earlier in bits(before):
                before |= self.before[earlier]
            self.before[number] = before
            for later in follow[number]:
                waits[later] -= 1
                if not waits[later]:
                    ready.append(later)
        self.sorted = ready
        return len(ready) == len(self.direct)


def bits(mask: int) -> Iterator[int]:
    """Yield the numbers of the bits that are set."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
