"""Clocks of ranks whose messages go through a relay.

real       the relay's own clock
fabric     each rank has a virtual one; the fabric's links determine transfer times
"""

import math
import time

from distlab.simulated import Fabric
from distlab.simulated.flows import Flows

__all__ = ["FabricClock", "RealClock"]


class RealClock:
    """The system's monotonic clock, made strictly increasing."""

    latest = staticmethod(time.monotonic)
    virtual = False

    def __init__(self):
        self._last = 0.0

    def moment(self, rank: int) -> float:
        """Return the present time of `rank`, later than any time returned before."""
        now = time.monotonic()
        self._last = now if now > self._last else math.nextafter(self._last, math.inf)
        return self._last

    def reached(self, rank: int, end: float) -> float:
        """Resume a rank after an event that ended at `end`; return its new time."""
        return self.moment(rank)


class FabricClock:
    """A virtual clock per rank. Computing takes no time; messages share the links.

    Invariant: messages begin and end in the order of time, for which the relay waits
    until every rank is blocked; so the times do not depend on the machine.
    """

    virtual = True

    def __init__(self, fabric: Fabric, world_size: int):
        self._now = [0.0] * world_size
        self._flows = Flows(fabric, world_size, self._note)
        self._ends, self._at = {}, 0.0  # (sender, receiver) -> when its message ends

    def moment(self, rank: int) -> float:
        """Return the present time of `rank`."""
        return self._now[rank]

    def begin(self, src: int, dst: int, size: int, ready: float, about) -> None:
        """Begin a message of `size` bytes whose sides were both posted by `ready`."""
        if ready > self._at:
            self._flows.settle(self._at)
            self._at = ready
        self._note(about, self._flows.begin(src, dst, size, ready, about))

    def _note(self, about, end):
        self._ends[about] = end

    def first_to_end(self) -> tuple[object, float] | None:
        """Return the message that ends first if no other begins before, and its end."""
        self._flows.settle(self._at)
        return min(self._ends.items(), key=lambda each: each[1], default=None)

    def end(self, about) -> None:
        """Remove a message that has ended."""
        del self._ends[about]

    def reached(self, rank: int, end: float) -> float:
        """Resume a rank after an event that ended at `end`; return its new time."""
        self._now[rank] = max(self._now[rank], end)
        return self._now[rank]

    def latest(self) -> float:
        """Return the time of the rank that is furthest ahead."""
        return max(self._now)
