"""Events of ranks, and messages, each a pair of a send and a recv event."""

from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["Event", "Message", "group_name", "members_of", "mesh_dimension_of", "moves"]


class Event(NamedTuple):
    """One action of one rank.

    rank: the rank that did it.
    start, end: seconds since the world began; `end` is None if it never ended.
    kind: "send", "recv", "barrier", "collective", "work", "mark" or "fault".
    peer: the other rank of a send or recv, else None.
    bytes: payload of a send or recv, else 0.
    step: the rank's n-th Comm call, counted from 1; 0 outside any call.
    label: the words of a mark or of work, the name of a collective, "dropped" on a send
        that the network dropped, between nodes "dropped: " and its words, or the kind
        of a fault: "kill", "hang", "died", "raised ValueError", "crash", "suspected",
        "restart", "corrupt", or "partition 0 1 | 2" from start to end.

    group: the ranks it was among, "" for all: see `members_of`.

    Of nodes a send and a recv take no time, and the label of either is the message in
    words, such as "store x 1". A dropped send ends when it was dropped, if that is
    known, else when it began. Invocations and responses of clients are messages, too. A
    mark "timer retry" is a timer named retry that has run out; it causes all that the
    node does after it, up to its next recv, mark or fault.
    """

    rank: int
    start: float
    end: float | None
    kind: str
    peer: int | None
    bytes: int
    step: int
    label: str
    group: str = ""


class Message(NamedTuple):
    """A send event and its matching recv event; either may be missing."""

    send: Event | None
    recv: Event | None


def group_name(ranks: Iterable[int], number: int, dimension: str = "") -> str:
    """Return the name of the `number`-th group of these ranks, see `members_of`.

    dimension: of the mesh that it lies along.
    """
    named = ",".join(map(str, sorted(ranks)))
    return f"{named}#{number}" + (f"@{dimension}" if dimension else "")


def members_of(group: str, world_size: int) -> list[int]:
    """Return the ranks of a group: "" is the world, "0,2#1" the first of 0 and 2."""
    if not group:
        return list(range(world_size))
    return [int(rank) for rank in group.partition("#")[0].split(",")]


def mesh_dimension_of(group: str) -> str:
    """Return "tp" for "0,2#1@tp", the group along that dimension of a mesh, else ""."""
    return group.partition("@")[2]


def moves(message: Message) -> tuple[float, float]:
    """Return the times at which a message began and stopped moving, in seconds."""
    sides = [event for event in message if event is not None]
    if len(sides) < 2:
        return sides[0].start, sides[0].start
    begun = max(event.start for event in sides)
    ended = min((event.end for event in sides if event.end is not None), default=begun)
    return begun, max(begun, ended)
