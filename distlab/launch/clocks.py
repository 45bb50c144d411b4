"""What time it is for ranks whose messages go through a relay.

real       the relay's own clock
virtual    each rank has one, and every message takes one second on it
"""

import math
import time

__all__ = ["RealClock", "VirtualClock"]


class RealClock:
    """The system's monotonic clock, of which no two moments are equal."""

    latest = staticmethod(time.monotonic)

    def __init__(self):
        self._last = 0.0

    def moment(self, rank: int) -> float:
        """Return what time it is for `rank`, later than any time returned before."""
        now = time.monotonic()
        self._last = now if now > self._last else math.nextafter(self._last, math.inf)
        return self._last

    def arrival(self, src: int, dst: int, ready: float) -> float:
        """Return when a message arrives whose sides were both there at `ready`."""
        return self.moment(src)

    def reached(self, rank: int, end: float) -> float:
        """Let a rank go on after what ended at `end`; return when it does."""
        return self.moment(rank)


class VirtualClock:
    """Each rank's own time; a rank sends one message at a time, and receives one.

    A message begins when both sides are there, in the first second that is free at
    both. Which one was heard of first by the relay makes no difference to that.
    """

    def __init__(self, world_size: int):
        self._now = [0] * world_size
        self._sending = [_Seconds() for _ in range(world_size)]
        self._receiving = [_Seconds() for _ in range(world_size)]

    def moment(self, rank: int) -> float:
        """Return what time it is for `rank`."""
        return self._now[rank]

    def arrival(self, src: int, dst: int, ready: float) -> float:
        """Return when a message arrives whose sides were both there at `ready`."""
        out, into = self._sending[src], self._receiving[dst]
        second = out.free_from(ready)
        while second != (later := out.free_from(into.free_from(second))):
            second = later
        out.take(second)
        into.take(second)
        return second + 1

    def reached(self, rank: int, end: float) -> float:
        """Let a rank go on after what ended at `end`; return when it does."""
        self._now[rank] = max(self._now[rank], end)
        return self._now[rank]

    def latest(self) -> float:
        """Return the time of the rank that is furthest."""
        return max(self._now)


class _Seconds:
    """Which seconds are taken; asking for a free one stays quick when many are."""

    def __init__(self):
        self._after = {}  # a second that is taken -> a later one to try

    def free_from(self, second):
        """Return the first free second that is not before `second`."""
        seen = []
        while second in self._after:
            seen.append(second)
            second = self._after[second]
        self._after.update(dict.fromkeys(seen, second))
        return second

    def take(self, second):
        self._after[second] = second + 1
