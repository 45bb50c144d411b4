"""Stores in which any replica answers at once, and the replicas agree afterwards.

    client ─▶ node: answers ─ AntiEntropy ─▶ all
              node ─ AntiEntropy: all it has ─▶ one of the others, now and then

The policy resolves concurrent writes: the last writer wins, or version vectors keep
both until a client that has read both writes.
"""

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple

from distlab.agree.stores.store import NOTHING, Copy, Store, Version
from distlab.agree.version_vectors import covers, merge_vectors, zero_vector
from distlab.network import Effect, Reply, Save, Send, SetTimer
from distlab.trace import Call

__all__ = ["AnyReplica", "LastWriterWins", "Sibling", "VersionVectors"]


class AntiEntropy(NamedTuple):
    """The sender's copies of some keys: pairs (key, held)."""

    held: tuple[tuple[Any, Any], ...]


class AnyReplica(Store):
    """A store whose replicas each take reads and writes, and spread the writes.

    gossip_s: seconds between two times at which a replica sends all that it has to a
        random peer (anti-entropy), so that dropped writes arrive after all.

    A subclass defines the state of a key that was never written (`nothing`), and three
    methods: `written`, `merged` and `shown`.
    Invariant: `merged` is commutative, associative and idempotent; so replicas that
    have received the same writes hold the same.
    Cost: no one-way delay for a read or a write.
    Source: Demers et al. 1987 (anti-entropy).
    """

    nothing: Any
    gossip_s = 0.1

    def __init__(self, me: int, peers: Sequence[int]):
        super().__init__(me, peers)
        self.held: dict[Any, Any] = {}

    def on_start(self, saved: dict[str, Any]) -> Iterator[Effect]:
        """Load the saved state, and begin to gossip."""
        self.held = dict(saved.values())
        yield SetTimer("gossip", self.gossip_s)

    def serve(self, request: int, call: Call) -> Iterator[Effect]:
        """Reply at once from this replica."""
        held = self.held.get(call.key, self.nothing)
        if call.op == "read":
            yield Reply(request, self.shown(call.key, held))
            return
        yield from self._hold(call.key, self.written(call.key, held, call.value))
        yield Reply(request)
        for peer in self.peers:
            yield Send(peer, AntiEntropy(((call.key, self.held[call.key]),)))

    def on_message(self, sender: int, versions: AntiEntropy) -> Iterator[Effect]:
        """Merge another replica's state with this one's."""
        for key, theirs in versions.held:
            mine = self.held.get(key, self.nothing)
            yield from self._hold(key, self.merged(mine, theirs))

    def on_timer(self, name: Hashable) -> Iterator[Effect]:
        """Send all that this replica holds to a random peer."""
        yield SetTimer("gossip", self.gossip_s)
        if self.peers and self.held:
            yield Send(
                self.random.choice(self.peers), AntiEntropy(tuple(self.held.items()))
            )

    def _hold(self, key, held):
        if held != self.held.get(key, self.nothing):
            self.held[key] = held
            yield Save(repr(key), (key, held))

    def written(self, key: Any, held: Any, value: Any) -> Any:
        """Return the state of a key after a client of this node has written a value."""
        raise NotImplementedError

    def merged(self, mine: Any, theirs: Any) -> Any:
        """Return the state of a key that merges this replica's with another's."""
        raise NotImplementedError

    def shown(self, key: Any, held: Any) -> Any:
        """Return the value that a client reads."""
        raise NotImplementedError


class LastWriterWins(AnyReplica):
    """A store that keeps, of two writes, the one with the greater version.

    "Last" is by counter, then by node: no clock is used. A write on one side of a
    partition is discarded for one on the other side although both were acknowledged.
    """

    nothing = NOTHING

    def written(self, key: Any, held: Copy, value: Any) -> Copy:
        """Return a copy with a version above this replica's."""
        return Copy(Version(held.version.counter + 1, self.me), value)

    def merged(self, mine: Copy, theirs: Copy) -> Copy:
        """Return the copy with the greater version."""
        return max(mine, theirs, key=lambda copy: copy.version)

    def shown(self, key: Any, held: Copy) -> Any:
        """Return the value."""
        return held.value


class Sibling(NamedTuple):
    """One of a key's concurrent values.

    vector: for each node the number of its writes that this one knew of, with itself.
    """

    vector: tuple[int, ...]
    value: Any

    def knows(self, vector: tuple[int, ...]) -> bool:
        """Return True if it knew of the write with this vector, and so replaces it."""
        return covers(self.vector, vector)


class VersionVectors(AnyReplica):
    """A store that keeps concurrent writes as siblings.

    A read returns the value, or the tuple of all siblings if there are several. A write
    replaces what was last read or written through its node, so a client that reads
    siblings and writes the merged value has resolved them. Siblings that arrived since,
    and that no client of this node has seen, stay.

    Source: Parker et al. 1983 (version vectors); DeCandia et al. 2007 (siblings).
    """

    nothing = ()

    def __init__(self, me: int, peers: Sequence[int]):
        super().__init__(me, peers)
        self.none = zero_vector(len(self.peers) + 1)
        self.seen: dict[Any, tuple[int, ...]] = {}  # key -> what clients here know of

    def written(self, key: Any, held: tuple, value: Any) -> tuple:
        """Return the new value, and the siblings that no client here has seen."""
        vector = list(self.seen.get(key, self.none))
        # Counted from what is on disk: a crash forgets what was seen, not this number.
        vector[self.me] = 1 + max((each.vector[self.me] for each in held), default=0)
        self.seen[key] = tuple(vector)
        return self.merged(held, (Sibling(self.seen[key], value),))

    def merged(self, mine: tuple, theirs: tuple) -> tuple:
        """Return the siblings of both that no other one replaces, sorted by vector."""
        both = {each.vector: each for each in mine + theirs}
        return tuple(
            both[vector]
            for vector in sorted(both)
            if not any(both[o].knows(vector) for o in both if o != vector)
        )

    def shown(self, key: Any, held: tuple) -> Any:
        """Return the value, or a tuple of siblings; clients here have now seen them."""
        vectors = (each.vector for each in held)
        self.seen[key] = merge_vectors(self.seen.get(key, self.none), *vectors)
        values = tuple(each.value for each in held)
        return values if len(values) > 1 else values[0] if values else None
