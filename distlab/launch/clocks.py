"""What time it is for ranks whose messages go through a relay.

real       the relay's own clock
fabric     each rank has a virtual one, and a message takes what its way takes
"""

import math
import time

from distlab.simulated import Fabric
from distlab.simulated.flows import Flows

__all__ = ["FabricClock", "RealClock"]


class RealClock:
    """The system's monotonic clock, of which no two moments are equal."""

    latest = staticmethod(time.monotonic)
    virtual = False

    def __init__(self):
        self._last = 0.0

    def moment(self, rank: int) -> float:
        """Return what time it is for `rank`, later than any time returned before."""
        now = time.monotonic()
        self._last = now if now > self._last else math.nextafter(self._last, math.inf)
        return self._last

    def reached(self, rank: int, end: float) -> float:
        """Let a rank go on after what ended at `end`; return when it does."""
        return self.moment(rank)


class FabricClock:
    """Each rank's own time. Computing takes none of it, and messages share their way.

    Invariant: messages begin and end in the order of time, for which the relay waits
    until every rank stands still; so the times do not depend on the machine.
    """

    virtual = True

    def __init__(self, fabric: Fabric, world_size: int):
        self._now = [0.0] * world_size
        self._flows = Flows(fabric, world_size, self._note)
        self._ends, self._at = {}, 0.0  # (sender, receiver) -> when its message ends

    def moment(self, rank: int) -> float:
        """Return what time it is for `rank`."""
        return self._now[rank]

    def begin(self, src: int, dst: int, size: int, ready: float, about) -> None:
        """Let `size` bytes begin whose sides were both there at `ready`."""
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
        """Let a message have ended."""
        del self._ends[about]

    def reached(self, rank: int, end: float) -> float:
        """Let a rank go on after what ended at `end`; return when it does."""
        self._now[rank] = max(self._now[rank], end)
        return self._now[rank]

    def latest(self) -> float:
        """Return the time of the rank that is furthest."""
        return max(self._now)
