"""What a rank can know of another: chains of messages, and never the clock.

    rank 0   ──speaks──┤ send
                          ╲
    rank 1                 ▼ recv ┤ send
                                     ╲
    rank 2                            ▼ recv ├──speaks──

What rank 0 did *happened before* what rank 2 does if a chain of messages leads from one
to the other. Of each rank only the order of its own events is used, so that two clocks
are never compared.

Source: Lamport, "Time, clocks, and the ordering of events in a distributed system"
(1978).
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

from distlab.trace import Trace

__all__ = ["Link", "answers", "known_when", "links"]


class Link(NamedTuple):
    """What `src` knew when its own clock showed `left_s`, `dst` knows at `there_s`."""

    src: int
    left_s: float
    dst: int
    there_s: float


def links(trace: Trace) -> list[Link]:
    """Return one link per message: from where it was sent to where it had arrived."""
    return [
        Link(send.rank, send.start, recv.rank, recv.end)
        for send, recv in trace.messages()
        if send and recv and recv.end is not None
    ]


def answers(trace: Trace) -> list[Link]:
    """Return the links backwards: a send that ended says that its receiver had begun.

    They exist only where a send waits for its receiver, which not every transport does.
    """
    return [
        Link(recv.rank, recv.start, send.rank, send.end)
        for send, recv in trace.messages()
        if send and recv and send.end is not None
    ]


def known_when(
    known_by: Iterable[Link], world_size: int, rank: int, moment_s: float
) -> list[float]:
    """Return when each rank, by its own clock, knows what `rank` did until `moment_s`.

    A rank that no chain of links reaches never knows it: math.inf.
    """
    known = [math.inf] * world_size
    known[rank] = moment_s
    settled = False
    while not settled:
        settled = True
        for link in known_by:
            if link.left_s >= known[link.src] and link.there_s < known[link.dst]:
                known[link.dst] = link.there_s
                settled = False
    return known
