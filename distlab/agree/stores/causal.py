"""A causally consistent store: no write is seen before those that it depends on.

    client ─▶ node: replies ─ CausalWrites: the write ─▶ all
              node ─ Known ─▶ one of the others ─ CausalWrites: what it lacks ─▶ node

Any replica replies at once, as under `LastWriterWins`, and the greater version stays.
But a write takes effect at a replica only after all writes that its writer knew of.
"""

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple

from distlab.agree.stores.any_replica import LastWriterWins
from distlab.agree.stores.store import NOTHING, Copy, Store
from distlab.agree.version_vectors import (
    covers,
    increment_vector,
    merge_vectors,
    zero_vector,
)
from distlab.network import Effect, Reply, Save, Send, SetTimer
from distlab.trace import Call

__all__ = ["Causal"]


class Write(NamedTuple):
    """A write, and the writes that its writer knew of.

    clock: for each node the number of its writes that the writer knew of, this one
    included (a vector clock).
    """

    writer: int
    clock: tuple[int, ...]
    key: Any
    copy: Any  # or an operation on it, in a subclass


class CausalWrites(NamedTuple):
    """Writes, each after all that it depends on, or that the receiver knows."""

    writes: tuple[Write, ...]


class Known(NamedTuple):
    """A request for missing writes: the number of each node's that the sender knows."""

    clock: tuple[int, ...]


class Causal(Store):
    """A store whose replicas each take reads and writes, applied in causal order.

    gossip_s: seconds between two times at which a replica requests missing writes from
        a random peer.

    Invariant: a replica that has a write has all that its writer knew of. So replicas
    that know of equally many writes of each node know of the same.
    Cost: no one-way delay for a read or a write, and n numbers with each write.
    Source: Ahamad et al. 1995 (causal memory); Lloyd et al. 2011 (COPS).
    """

    nothing: Any = NOTHING
    gossip_s = 0.1

    def __init__(self, me: int, peers: Sequence[int]):
        super().__init__(me, peers)
        self.clock = zero_vector(len(self.peers) + 1)
        self.writes: list[Write] = []  # in the order in which they took effect here
        self.copies: dict[Any, Copy] = {}

    def on_start(self, saved: dict[str, Any]) -> Iterator[Effect]:
        """Load the saved writes, and begin to gossip."""
        for number in range(len(saved)):
            self._apply(saved[f"write {number}"])
        yield SetTimer("gossip", self.gossip_s)

    def serve(self, request: int, call: Call) -> Iterator[Effect]:
        """Reply at once from this replica."""
        copy = self.copies.get(call.key, self.nothing)
        if call.op == "read":
            yield Reply(request, copy.value)
            return
        copy = self.written(call.key, copy, call.value)
        write = Write(self.me, increment_vector(self.clock, self.me), call.key, copy)
        yield from self._take(write)
        yield Reply(request)
        for peer in self.peers:
            yield Send(peer, CausalWrites((write,)))

    def on_message(self, sender: int, message: Any) -> Iterator[Effect]:
        """Apply the writes that are ready; request, or send, those that are missing."""
        match message:
            case CausalWrites(writes):
                for write in writes:
                    if self._is_next(write):
                        yield from self._take(write)
                if any(
                    write.clock[write.writer] > self.clock[write.writer]
                    for write in writes
                ):
                    yield Send(sender, Known(self.clock))
            case Known(clock):
                lacks = [w for w in self.writes if w.clock[w.writer] > clock[w.writer]]
                if lacks:
                    yield Send(sender, CausalWrites(tuple(lacks)))

    def on_timer(self, name: Hashable) -> Iterator[Effect]:
        """Request the writes that this replica lacks from a random peer."""
        yield SetTimer("gossip", self.gossip_s)
        if self.peers:
            yield Send(self.random.choice(self.peers), Known(self.clock))

    def _is_next(self, write):
        """Return True if all that the writer knew of is here, and the write is not."""
        after = increment_vector(self.clock, write.writer)
        is_next = after[write.writer] == write.clock[write.writer]
        return is_next and covers(after, write.clock)

    def _take(self, write):
        yield Save(f"write {len(self.writes)}", write)
        self._apply(write)

    def _apply(self, write):
        self.writes.append(write)
        self.clock = merge_vectors(self.clock, write.clock)
        mine = self.copies.get(write.key, self.nothing)
        self.copies[write.key] = self.merged(mine, write.copy)

    # What a write sends to all, and a replica's copy after it took effect there.
    written, merged = LastWriterWins.written, LastWriterWins.merged
