"""`Outcome`: the result of a run of nodes and clients, with a summary."""

import html
from collections import Counter
from dataclasses import dataclass

from distlab.history import History
from distlab.show import folded
from distlab.trace import Trace, is_lost
from distlab.units import readable_seconds

__all__ = ["Outcome"]

_MOST_PLAYED = 1500  # events; for more, ask for show.player
_TOLD = {"ok": "answered", "failed": "refused", "unknown": "of unknown outcome"}


@dataclass(repr=False)
class Outcome:
    """The result of a run, whether its nodes were processes or simulated.

    history: every operation, with its invocation and response.
    trace: the events of every node and client; the clients come after the nodes.
    nodes: the nodes' objects as they were at the end, None for one that was dead. From
        real processes they are copies.
    saved: node -> its saved values, name -> value.
    elapsed_s: the duration, on the clock of the nodes' timers.
    """

    history: History
    trace: Trace
    nodes: list
    saved: list[dict]
    elapsed_s: float

    def __repr__(self):
        asked = len(self.history)
        counts = Counter(operation.outcome for operation in self.history)
        described = [f"{counts[how]:,} {_TOLD[how]}" for how in _TOLD if counts[how]]
        operations = f"{asked:,} operation{'s' * (asked != 1)}"
        did = f"{operations}: {', '.join(described)}" if asked else "no operations"
        nodes = range(self.trace.world_size - self.trace.clients)
        sends = [
            event
            for event in self.trace.events
            if event.kind == "send" and event.rank in nodes and event.peer in nodes
        ]
        sent, dropped = len(sends), sum(map(is_lost, sends))
        gone = f", {dropped:,} dropped" if dropped else ""
        passed = f"{sent:,} message{'s' * (sent != 1)} between nodes{gone}"
        took = readable_seconds(self.elapsed_s)
        return f"{self.trace.actors()}; {did}; {passed}; {took}"

    def _repr_mimebundle_(self, include=None, exclude=None):
        headline = f"<b>{html.escape(repr(self))}</b>"
        return {
            "text/html": f"<div>{headline}{folded(self.trace, _MOST_PLAYED)}</div>",
            "text/plain": repr(self),
        }
