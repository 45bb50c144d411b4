"""Who came to have the root's tensor, and when, read off the messages of a trace."""

import math
from dataclasses import dataclass

from distlab.trace import Trace

__all__ = ["Spread"]


@dataclass(frozen=True)
class Spread:
    """How one tensor went through the world.

    early: (src, dst) of messages that left before their sender had the tensor.
    again: ranks that were sent the tensor when they had it.
    never: ranks that were not sent it.
    """

    early: list[tuple[int, int]]
    again: list[int]
    never: list[int]

    @classmethod
    def of(cls, trace: Trace, root: int) -> "Spread":
        """Read it from a trace; at the start only `root` has the tensor."""
        has_since = {root: -math.inf}
        early, again = [], []
        arrived = [
            m for m in trace.messages() if None not in m and m.recv.end is not None
        ]
        for send, recv in sorted(arrived, key=lambda message: message.recv.end):
            if has_since.get(send.rank, math.inf) > send.start:
                early.append((send.rank, recv.rank))
            elif recv.rank in has_since:
                again.append(recv.rank)
            else:
                has_since[recv.rank] = recv.end
        ranks = range(trace.world_size)
        return cls(early, again, [rank for rank in ranks if rank not in has_since])
