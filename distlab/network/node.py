"""Nodes of a protocol: each takes one event at a time, and returns effects.

                      ┌──────── Node ────────┐
    a client's call ──▶ on_client(request, …) │──▶ Reply, Refuse
    a message ────────▶ on_message(sender, …) │──▶ Send
    a timer ──────────▶ on_timer(name)        │──▶ SetTimer, CancelTimer
    start, restart ───▶ on_start(saved)       │──▶ Save, Append, Truncate
    disk has written ─▶ on_synced(token)      │──▶ Sync
                      └───────────────────────┘

A node has no socket or thread, and polls nothing: every input is a call of one of five
methods, with the reading of the node's clock, and every output is in the effects that
the call returns. So the same object runs in a real process behind the switch, in the
simulator, and under a search for the schedule that breaks it. The form is that of
etcd's raft and of DSLabs.
"""

import random
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple

from distlab.trace import Call

__all__ = [
    "Append",
    "CancelTimer",
    "Effect",
    "Node",
    "Note",
    "Peers",
    "Refuse",
    "Reply",
    "Runtime",
    "Save",
    "Send",
    "SetTimer",
    "Sync",
    "Truncate",
    "session_of",
]

CALLS_PER_CLIENT = 1_000_000


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
    """Answer a client's request: it was not done here, and will not be; `why` in words.

    to: the node to ask instead; a client with retries left asks it.
    """

    request: int
    why: str = ""
    to: int | None = None


class Save(NamedTuple):
    """Write a value to this node's disk, under a name, before anything that follows.

    It replaces any earlier value of that name. A crash of the process leaves it as it
    is; a power loss does so once a `Sync` that follows it has finished.
    """

    name: str
    value: Any


class Append(NamedTuple):
    """Add an item to the list on this node's disk under a name, as `Save` writes."""

    name: str
    item: Any


class Truncate(NamedTuple):
    """Cut the list on this node's disk under a name to its first `length` items."""

    name: str
    length: int


class Sync(NamedTuple):
    """Make all writes so far durable; then `on_synced(token)` is called.

    After a crash in between it is not called, and a power loss loses the writes.
    """

    token: Hashable


class Note(NamedTuple):
    """Write words into the trace, such as "leader of term 3"."""

    words: str


Effect = (
    Send | SetTimer | CancelTimer | Reply | Refuse | Save | Append | Truncate | Sync
) | Note

_METHODS = {
    Send: "send",
    SetTimer: "set_timer",
    CancelTimer: "cancel_timer",
    Reply: "reply",
    Refuse: "refuse",
    Save: "write",
    Append: "write",
    Truncate: "write",
    Sync: "sync",
    Note: "note",
}


class Runtime:
    """Carries out the effects of nodes; a subclass has the methods below.

    Each gets the node's number, then the effect's fields: send, set_timer,
    cancel_timer, reply, refuse, sync, note; `write` gets the whole effect.
    """

    _handlers: dict[type, Callable]

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        cls._handlers = {
            kind: getattr(cls, name)
            for kind, name in _METHODS.items()
            if hasattr(cls, name)
        }

    def carry_out(self, node: int, effects: Iterable[Effect]) -> None:
        """Carry out the effects of one node, in order."""
        for effect in effects:
            kind = type(effect)
            if kind is Send:
                self.send(node, effect[0], effect[1])
            elif kind is Save or kind is Append or kind is Truncate:
                self.write(node, effect)
            else:
                self._handlers[kind](self, node, *effect)


class Peers(Sequence):
    """The numbers of all nodes but one; it takes no memory for each of them."""

    __slots__ = ("_me", "_nodes")

    def __init__(self, me: int, nodes: int):
        self._me, self._nodes = me, nodes

    def __len__(self):
        return self._nodes - 1

    def __getitem__(self, at):
        if type(at) is int and 0 <= at < self._nodes - 1:
            return at if at < self._me else at + 1
        if isinstance(at, slice):
            return tuple(self)[at]
        at = range(self._nodes - 1)[at]
        return at if at < self._me else at + 1

    def __contains__(self, node):
        return node != self._me and node in range(self._nodes)

    def __iter__(self):
        yield from range(self._me)
        yield from range(self._me + 1, self._nodes)

    def __eq__(self, other):
        return tuple(self) == tuple(other) if isinstance(other, Sequence) else False

    __hash__ = None

    def __add__(self, other):
        return tuple(self) + tuple(other)

    def __radd__(self, other):
        return tuple(other) + tuple(self)

    def __repr__(self):
        return repr(tuple(self))


def session_of(request: int) -> tuple[int, int]:
    """Return (client, number of its call, from 1) of a request.

    A client's retry of a call has the same request, at whatever node it asks.
    """
    return divmod(request, CALLS_PER_CLIENT)


class Node:
    """One node of a protocol; a protocol is a subclass.

    me: its number. peers: the numbers of the others.
    random: its only source of chance, seeded by the runtime.
    clock_s: the reading of its own clock at this call, in seconds: it agrees with no
        other node's, may be fast or slow, and may jump. Timers do not jump with it.

    Each method returns effects, in the order in which they are to happen: a list, or
    None for none, or it yields them. It returns soon, and behaves in the same way
    whenever it is called in the same way.
    """

    random: random.Random
    clock_s: float = 0.0

    def __init__(self, me: int, peers: Sequence[int]):
        self.me, self.peers = me, peers

    def on_start(self, saved: dict[str, Any]) -> Iterable[Effect] | None:
        """Begin; after a crash `saved` has the values that the node had saved."""

    def on_client(self, request: int, call: Call) -> Iterable[Effect] | None:
        """Handle a client's call; `Reply` or `Refuse` answers it, now or later.

        request: the call's number, unique in the run, also after a restart: it
            identifies a late response to a message that the node sent before a crash.
            A client that asks again, here or elsewhere, does so with the same number;
            `session_of` gives its parts.
        """

    def on_message(self, sender: int, message: Any) -> Iterable[Effect] | None:
        """Handle a message from the node with number `sender`."""

    def on_timer(self, name: Hashable) -> Iterable[Effect] | None:
        """Handle the end of the timer of this name."""

    def on_synced(self, token: Hashable) -> Iterable[Effect] | None:
        """Handle the end of the `Sync` of this token: what was written is durable."""
