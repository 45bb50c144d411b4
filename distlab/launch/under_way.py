"""What a relay knows of the messages that are under way."""

from distlab.recorder import IN, OUT

__all__ = ["AnyWait", "Op", "Side"]


class Op:
    """One call of a rank that is under way.

    group: of which group it is. out, into: its sides of messages, or None.
    left: sides that have no partner yet.
    since: when it began. end: when the last of its messages has arrived.
    waits: whether its rank stands still for it. arrived: what it was given.
    asks: the number of the request that its answer goes to.
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
    """What a rank waits for that goes on with the first of several calls to end."""

    def __init__(self, asks, ops):
        self.asks, self.ops = asks, ops
        for op in ops:
            op.first = self

    def sides(self) -> list[tuple[int, int, int, str]]:
        """Return (peer, way, number, group) of each of their messages."""
        sides = [(op, way, side) for op in self.ops for way, side in op.ways()]
        return [(side.peer, way, side.number, op.group) for op, way, side in sides]


class Side:
    """One side of a message: with whom, its number between the two, size, type, data.

    peer: -1 for whoever sends first, until that is known.
    bytes: -1 for an object that is asked for, until it is there. end: when it arrived.
    """

    def __init__(self, peer, number, type_, size, data=b""):
        self.peer, self.number, self.type = peer, number, type_
        self.bytes, self.data, self.end = size, data, None

    def described(self) -> str:
        """Return what it is, in words."""
        if self.type == "object":
            return "an object"
        return f"{self.bytes} bytes of {self.type}"
