"""The virtual clock: a queue of ranks by the time at which they resume.

    now 1.0     7, 4, 0     the next is rank 0, then 4
    1.5         3           later times, in a heap
    2.0         5, 1, 6

In a collective hundreds of ranks resume at the same time. They are in one list, so that
the heap is accessed once per time, not once per message.
"""

from bisect import insort
from heapq import heappop, heappush
from operator import neg

__all__ = ["Clock"]


class Clock:
    """Ranks in the order of (time, rank).

    now: seconds from the start. It advances when no rank is left at a time.
    settle: called with a time before the clock leaves it; it may wake ranks.
    """

    def __init__(self, settle=None):
        self.now, self._settle = 0.0, settle
        self._at_now = []  # the lowest rank is last
        self._later, self._moments = {}, []
        self._asking = []

    def wake(self, rank: int, at: float) -> None:
        """Schedule `rank` to resume at a time, now or later."""
        ranks = self._later.get(at)
        if ranks is not None:
            ranks.append(rank)
        elif at > self.now:
            self._later[at] = [rank]
            heappush(self._moments, at)
        else:
            insort(self._at_now, rank, key=neg)

    def wake_at_next(self, rank: int) -> None:
        """Schedule `rank` last at the next time at which another one resumes."""
        self._asking.append(rank)

    def next(self) -> int | None:
        """Return the rank that resumes next, None if none does."""
        if not self._at_now and self._settle is not None:
            self._settle(self.now)
        if not self._at_now:
            if not self._moments:
                return None
            self.now = heappop(self._moments)
            self._at_now = self._later.pop(self.now)
            self._at_now.sort(reverse=True)
            if self._asking:
                self._at_now[:0], self._asking = self._asking, []
        return self._at_now.pop()

    def stop(self) -> None:
        """Remove all ranks from the queue."""
        self._at_now, self._later, self._moments = [], {}, []
        self._settle = None
