"""Nodes of a protocol: each takes one event at a time, and returns effects.

                      ┌──────── Node ────────┐
    a client's call ──▶ on_client(request, …) │──▶ Reply, Refuse
    a message ────────▶ on_message(sender, …) │──▶ Send
    a timer ──────────▶ on_timer(name)        │──▶ SetTimer, CancelTimer
    start, restart ───▶ on_start(saved)       │──▶ Save
                      └───────────────────────┘

A node has no clock, socket or thread, and polls nothing: every input is a call of one
of four methods, and every output is in the effects that the call returns. So the same
object runs in a real process behind the switch, in the simulator, and under a search
for the schedule that breaks it. The form is that of etcd's raft and of DSLabs.
"""

import random
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple

from distlab.trace import Call

__all__ = [
    "CancelTimer",
    "Effect",
    "Node",
    "Note",
    "Refuse",
    "Reply",
    "Save",
    "Send",
    "SetTimer",
]


class Send(NamedTuple):
    """Send a message to node `to`; the network may delay, drop or duplicate it.

    message: plain data: None, numbers, strings, bytes, and tuples, lists, dicts and
    sets of them, also named tuples and dataclasses. The receiver gets a copy.
    """

    to: int
    message: Any


class SetTimer(NamedTuple):
    """Call `on_timer(name)` once, in `after_s` seconds.

    It replaces the timer of this name, if one is set. A crash cancels every timer.
    """

    name: Hashable
    after_s: float


class CancelTimer(NamedTuple):
    """Cancel the timer of this name, if one is set."""

    name: Hashable


class Reply(NamedTuple):
    """Answer a client's request: it was done, with this result (plain data)."""

    request: int
    result: Any = None


class Refuse(NamedTuple):
    """Answer a client's request: it was not done, and never will be; `why` in words."""

    request: int
    why: str = ""


class Save(NamedTuple):
    """Write a value to this node's disk, under a name, before anything that follows.

    It replaces any earlier value of that name. A crash leaves it as it is.
    """

    name: str
    value: Any


class Note(NamedTuple):
    """Write words into the trace, such as "leader of term 3"."""

    words: str


Effect = Send | SetTimer | CancelTimer | Reply | Refuse | Save | Note


class Node:
    """One node of a protocol; a protocol is a subclass.

    me: its number. peers: the numbers of the others.
    random: its only source of chance, seeded by the runtime.

    Each method returns effects, in the order in which they are to happen: a list, or
    None for none, or it yields them. It returns soon, and behaves in the same way
    whenever it is called in the same way.
    """

    random: random.Random

    def __init__(self, me: int, peers: Sequence[int]):
        self.me, self.peers = me, tuple(peers)

    def on_start(self, saved: dict[str, Any]) -> Iterable[Effect] | None:
        """Begin; after a crash `saved` has the values that the node had saved."""

    def on_client(self, request: int, call: Call) -> Iterable[Effect] | None:
        """Handle a client's call; `Reply` or `Refuse` answers it, now or later.

        request: the call's number, unique in the run, also after a restart: it
            identifies a late response to a message that the node sent before a crash.
        """

    def on_message(self, sender: int, message: Any) -> Iterable[Effect] | None:
        """Handle a message from the node with number `sender`."""

    def on_timer(self, name: Hashable) -> Iterable[Effect] | None:
        """Handle the end of the timer of this name."""
