"""Partial orders: which of some things must come before which."""

import heapq
import itertools
from collections.abc import Iterable, Iterator, Sequence

__all__ = ["Order", "bits", "merged"]


def merged(chains: Sequence[Sequence], rank: dict[int, float]) -> list | None:
    """Return all things of several chains in one order, or None if there is none.

    Each chain is in this order; of two that may come next, the one of lower rank does.
    rank: id -> where it comes if nothing else decides.
    """
    things = {id(thing): thing for chain in chains for thing in chain}
    follow, waits = {name: [] for name in things}, dict.fromkeys(things, 0)
    for chain in chains:
        for one, two in itertools.pairwise(chain):
            follow[id(one)].append(id(two))
            waits[id(two)] += 1
    number = {name: place for place, name in enumerate(things)}
    ready = [(rank[name], number[name], name) for name in things if not waits[name]]
    heapq.heapify(ready)
    order = []
    while ready:
        name = heapq.heappop(ready)[-1]
        order.append(things[name])
        for later in follow[name]:
            waits[later] -= 1
            if not waits[later]:
                heapq.heappush(ready, (rank[later], number[later], later))
    return order if len(order) == len(things) else None


class Order:
    """A partial order of the numbers below `size`, kept as what is before each.

    before[n] has a bit for every number that is before n; sorted has all of them, none
    before what is before it. Both are as `close` last found them.
    """

    def __init__(self, size: int, pairs: Iterable[tuple[int, int]] = ()):
        self.direct = [0] * size
        for one, two in pairs:
            self.direct[two] |= 1 << one
        self.before = [0] * size
        self.sorted = list(range(size))

    def add(self, one: int, two: int) -> None:
        """Say that one number is before another; `close` draws the conclusions."""
        self.direct[two] |= 1 << one

    def copy(self) -> "Order":
        """Return the same order, to go on with."""
        other = Order(0)
        other.direct, other.before = list(self.direct), list(self.before)
        other.sorted = self.sorted
        return other

    def close(self) -> bool:
        """Find all that is before each number; False if something is before itself."""
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
