"""`Outcome`: what a run of nodes and clients gives back."""

from dataclasses import dataclass

from distlab.history import History
from distlab.trace import Trace

__all__ = ["Outcome"]


@dataclass
class Outcome:
    """What happened in a run, whether its nodes were processes or simulated.

    history: what the clients asked, and what they were told.
    trace: what every node and client did; the clients come after the nodes.
    nodes: the nodes' objects as they were at the end, None for one that was dead. From
        real processes they are copies.
    saved: node -> what it had saved, name -> value.
    elapsed_s: how long it took, on the clock that the nodes' timers had.
    """

    history: History
    trace: Trace
    nodes: list
    saved: list[dict]
    elapsed_s: float
