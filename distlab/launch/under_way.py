"""What a relay knows of the messages that are under way."""

__all__ = ["Op", "Side"]


class Op:
    """One call of a rank that is under way.

    out, into: its sides of messages, or None. left: sides that have no partner yet.
    since: when it began. end: when the last of its messages has arrived.
    waits: whether its rank stands still for it. arrived: what it was given.
    asks: the number of the request that its answer goes to.
    """

    def __init__(self, rank, number, kind, since, asks):
        self.rank, self.number, self.kind, self.since = rank, number, kind, since
        self.asks = asks
        self.out = self.into = None
        self.left, self.end, self.waits, self.arrived = 0, since, False, b""


class Side:
    """One side of a message: with whom, its number between the two, size, type, data.

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
