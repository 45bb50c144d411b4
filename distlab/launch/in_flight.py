"""Calls and messages under way, as a relay keeps them."""

from distlab.recorder import IN, OUT, Post

__all__ = ["AnyWait", "InFlightOp", "Side"]


class InFlightOp:
    """One call of a rank that is under way.

    group: its group's name. out, into: its sides of messages, or None.
    left: sides that have no partner yet.
    since: the time of its begin. end: the arrival of the last of its messages.
    waits: whether its rank is blocked in it. arrived: the bytes received.
    asks: the number of the request that its reply goes to.
    first: the AnyWait that it is one of, or None.
    """

    def __init__(self, rank, number, kind, since, asks, group):
        self.rank, self.number, self.kind, self.since = rank, number, kind, since
        self.asks, self.group = asks, group
        self.out = self.into = self.first = None
        self.left, self.end, self.waits, self.arrived = 0, since, False, b""

    def ways(self) -> list:
        """Return (way, side) of each of its sides."""
        return [each for each in ((IN, self.into), (OUT, self.out)) if each[1]]


class AnyWait:
    """A rank's wait for the first of several calls to end."""

    def __init__(self, asks, ops):
        self.asks, self.ops = asks, ops
        for op in ops:
            op.first = self

    def sides(self) -> list[tuple[int, int, int, str]]:
        """Return (peer, way, number, group) of each of their messages."""
        sides = [(op, way, side) for op in self.ops for way, side in op.ways()]
        return [(side.peer, way, side.number, op.group) for op, way, side in sides]


class Side:
    """One side of a message: peer, number between the two, size, type and data.

    peer: -1 for a receive from any rank, until it is matched.
    bytes: -1 for an expected object, until it arrives. end: the time of arrival.
    """

    def __init__(self, peer, number, type_, size, data=b""):
        self.peer, self.number, self.type = peer, number, type_
        self.bytes, self.data, self.end = size, data, None

    def described(self) -> str:
        """Return its size and type, in words."""
        return Post(self.number, self.bytes, self.type).describe()
