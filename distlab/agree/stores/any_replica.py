"""Stores in which any replica answers at once, and the replicas agree afterwards.

    client ─▶ node: answers ─ News ─▶ all
              node ─ News: all it has ─▶ one of the others, now and then

What becomes of two writes that did not know of each other is the policy: the last
writer wins, or version vectors keep both until a client that has read both decides.
"""

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple

from distlab.agree.stores.store import NOTHING, Copy, Store, Version
from distlab.network import Effect, Reply, Save, Send, SetTimer
from distlab.trace import Call

__all__ = ["AnyReplica", "LastWriterWins", "Sibling", "VersionVectors"]


class News(NamedTuple):
    """What the sender has under some keys: pairs (key, what is there)."""

    held: tuple[tuple[Any, Any], ...]


class AnyReplica(Store):
    """Read and write at any replica; what was written spreads.

    gossip_s: how often a replica sends all that it has to one of the others, drawn by
        chance (anti-entropy), so that what was dropped arrives after all.

    A subclass says what a key has that nobody wrote (`nothing`), and has three
    methods: `written`, `merged` and `shown`.
    Invariant: `merged` gives the same in whichever order, and however often, what is
    held meets; so replicas that have heard of the same writes have the same.
    Cost: no one-way delay for a read or a write.
    Source: Demers et al. 1987 (anti-entropy).
    """

    nothing: Any

    def __init__(self, me: int, peers: Sequence[int], *, gossip_s: float = 0.1):
        super().__init__(me, peers)
        self.gossip_s = gossip_s
        self.held: dict[Any, Any] = {}

    def on_start(self, saved: dict[str, Any]) -> Iterator[Effect]:
        """Take from the disk what was held, and begin to gossip."""
        self.held = dict(saved.values())
        yield SetTimer("gossip", self.gossip_s)

    def serve(self, request: int, call: Call) -> Iterator[Effect]:
        """Answer at once."""
        held = self.held.get(call.key, self.nothing)
        if call.op == "read":
            yield Reply(request, self.shown(call.key, held))
            return
        yield from self._hold(call.key, self.written(call.key, held, call.value))
        yield Reply(request)
        for peer in self.peers:
            yield Send(peer, News(((call.key, self.held[call.key]),)))

    def on_message(self, sender: int, news: News) -> Iterator[Effect]:
        """Merge what another has with what is here."""
        for key, theirs in news.held:
            mine = self.held.get(key, self.nothing)
            yield from self._hold(key, self.merged(mine, theirs))

    def on_timer(self, name: Hashable) -> Iterator[Effect]:
        """Tell one of the others everything."""
        yield SetTimer("gossip", self.gossip_s)
        if self.peers and self.held:
            yield Send(self.random.choice(self.peers), News(tuple(self.held.items())))

    def _hold(self, key, held):
        if held != self.held.get(key, self.nothing):
            self.held[key] = held
            yield Save(repr(key), (key, held))

    def written(self, key: Any, held: Any, value: Any) -> Any:
        """Return what a key has after a client of this node has written a value."""
        raise NotImplementedError

    def merged(self, mine: Any, theirs: Any) -> Any:
        """Return what a key has that had one thing here and another there."""
        raise NotImplementedError

    def shown(self, key: Any, held: Any) -> Any:
        """Return what a client reads."""
        raise NotImplementedError


class LastWriterWins(AnyReplica):
    """Of two writes keep the one with the greater version, and discard the other.

    "Last" is by count, then by node: no clock is asked. A write on one side of a
    partition is discarded for one on the other side although both were acknowledged.
    """

    nothing = NOTHING

    def written(self, key: Any, held: Copy, value: Any) -> Copy:
        """Return a copy with a version above the one that is here."""
        return Copy(Version(held.version.counter + 1, self.me), value)

    def merged(self, mine: Copy, theirs: Copy) -> Copy:
        """Return the copy with the greater version."""
        return max(mine, theirs, key=lambda copy: copy.version)

    def shown(self, key: Any, held: Copy) -> Any:
        """Return the value."""
        return held.value


class Sibling(NamedTuple):
    """A value beside which there may be others.

    vector: for each node the number of its writes that this one knew of, and itself.
    """

    vector: tuple[int, ...]
    value: Any

    def knows(self, vector: tuple[int, ...]) -> bool:
        """Return whether it knew of the write with this vector, and so replaces it."""
        return all(a >= b for a, b in zip(self.vector, vector, strict=True))


class VersionVectors(AnyReplica):
    """Keep writes that did not know of each other side by side, as siblings.

    A read returns the value, or the tuple of all siblings if there are several. A write
    replaces what was last read or written through its node, so a client that reads
    siblings and writes what it makes of them has merged them. What has arrived since,
    and nobody at this node has seen, it leaves beside it.

    Source: Parker et al. 1983 (version vectors); DeCandia et al. 2007 (siblings).
    """

    nothing = ()

    def __init__(self, me: int, peers: Sequence[int], *, gossip_s: float = 0.1):
        super().__init__(me, peers, gossip_s=gossip_s)
        self.none = (0,) * (len(self.peers) + 1)
        self.seen: dict[Any, tuple[int, ...]] = {}  # key -> what clients here know of

    def written(self, key: Any, held: tuple, value: Any) -> tuple:
        """Return the value, beside the siblings that nobody here has seen."""
        vector = list(self.seen.get(key, self.none))
        # Counted from what is on disk: a crash forgets what was seen, not this number.
        vector[self.me] = 1 + max((each.vector[self.me] for each in held), default=0)
        self.seen[key] = tuple(vector)
        return self.merged(held, (Sibling(self.seen[key], value),))

    def merged(self, mine: tuple, theirs: tuple) -> tuple:
        """Return the siblings of both that no other one replaces, in one order."""
        both = {each.vector: each for each in mine + theirs}
        return tuple(
            both[vector]
            for vector in sorted(both)
            if not any(both[o].knows(vector) for o in both if o != vector)
        )

    def shown(self, key: Any, held: tuple) -> Any:
        """Return the value, or a tuple of several; clients here have now seen them."""
        vectors = [self.seen.get(key, self.none), *(each.vector for each in held)]
        self.seen[key] = tuple(map(max, zip(*vectors, strict=True)))
        values = tuple(each.value for each in held)
        return values if len(values) > 1 else values[0] if values else None
