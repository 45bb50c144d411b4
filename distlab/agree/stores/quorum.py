"""A quorum store: every read quorum intersects the last write's quorum.

    read   ─ Ask ─▶ all ─ Have ─▶ the newest of `reads` copies
           ─ Keep ▶ all ─ Kept ─▶ now `writes` replicas have it: reply
    write  ─ Ask ─▶ all ─ Have ─▶ a version above all that were received
           ─ Keep ▶ all ─ Kept ─▶ now `writes` replicas have it: reply

The node that a client calls is the coordinator of its call; its own replica is one of
those queried, without a message. With three replicas a majority is two: two majorities
always share a replica, so no two sides of a partition can both have one.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, NamedTuple

from distlab.agree.stores.store import NOTHING, Copy, Store, Version
from distlab.errors import InvalidArgument
from distlab.network import CancelTimer, Effect, Refuse, Reply, Save, Send, SetTimer
from distlab.trace import Call

__all__ = ["Quorum"]


class Ask(NamedTuple):
    """Coordinator to replica: a request for its copy of a key."""

    request: int
    key: Any


class Have(NamedTuple):
    """Replica to coordinator: its copy."""

    request: int
    copy: Copy


class Keep(NamedTuple):
    """Coordinator to replica: a copy to keep, unless the replica has a newer one."""

    request: Hashable
    key: Any
    copy: Copy


class CopyStored(NamedTuple):
    """Replica to coordinator: that copy, or a newer one, is on the replica's disk."""

    request: Hashable


@dataclass
class Coordination:
    """A call that this node coordinates.

    chosen: the copy that is to be kept; None while copies are requested. heard: replica
    -> its reply in this phase. replied: True if the client has its response. stands_in:
    node -> the replica that it stands in for, in a sloppy quorum.
    """

    call: Call
    chosen: Copy | None = None
    heard: dict[int, Copy | None] = field(default_factory=dict)
    replied: bool = False
    stands_in: dict[int, int] = field(default_factory=dict)


class Quorum(Store):
    """A store with read and write quorums, `reads` and `writes`: by default majorities.

    write_back: True if a read has its result kept by `writes` replicas before it
        returns. Without that it is not linearizable, also if reads + writes is more
        than there are replicas: a write that has reached one replica of three is seen
        by a read that queries it, and not by a later read that queries the others.
    patience_s: seconds that a coordinator waits for enough replies.

    Invariant: a version belongs to one value. A coordinator keeps its choice on its
    own disk before it sends it, and chooses a version above the one there.
    Cost: 2 one-way delays to ask, 2 to keep, none where its own replica is enough.
    Source: Attiya, Bar-Noy and Dolev 1995; with several writers, Lynch and
    Shvartsman 1997.
    """

    patience_s = 0.2
    replicas = 0  # of each key, N; 0 for all nodes
    nothing: Any = NOTHING

    def __init__(
        self,
        me: int,
        peers: Sequence[int],
        *,
        reads: int | None = None,
        writes: int | None = None,
        write_back: bool = True,
    ):
        super().__init__(me, peers)
        self.replicas = self.replicas or len(self.peers) + 1
        majority = self.replicas // 2 + 1
        self.reads = majority if reads is None else reads
        self.writes = majority if writes is None else writes
        for knob, count in (("reads", self.reads), ("writes", self.writes)):
            if count not in range(1, self.replicas + 1):
                raise InvalidArgument(
                    f"{knob}={count!r}: of {self.replicas} replicas a quorum is 1 to "
                    f"{self.replicas}."
                )
        self.write_back = write_back
        self.copies: dict[Any, Copy] = {}
        self.work: dict[int, Coordination] = {}  # request -> what is still to be done

    def on_start(self, saved: dict[str, Any]) -> None:
        """Load the saved copies; calls from before the crash are forgotten."""
        self.copies = dict(saved.values())

    def serve(self, request: int, call: Call) -> Iterator[Effect]:
        """Request all replicas' copies of the key."""
        self.work[request] = Coordination(call)
        yield SetTimer(request, self.patience_s)
        yield from self._send(call.key, Ask(request, call.key))
        if self.me in self.replicas_of(call.key):
            yield from self._hear(request, self.me, self._copy(call.key))

    def replicas_of(self, key: Any) -> Sequence[int]:
        """Return the nodes that are to hold a key: here all of them."""
        return range(self.replicas)

    def _send(self, key, message):
        for node in self.replicas_of(key):
            if node != self.me:
                yield Send(node, message)

    def on_message(self, sender: int, message: Any) -> Iterator[Effect]:
        """As a replica return or keep a copy; as a coordinator count the replies."""
        match message:
            case Ask(request, key):
                yield Send(sender, Have(request, self._copy(key)))
            case Keep(request, key, copy):
                yield from self._keep(key, copy)
                yield Send(sender, CopyStored(request))
            case Have(request, copy):
                work = self.work.get(request)
                if work and work.chosen is None:
                    yield from self._hear(request, sender, copy)
            case CopyStored(request):
                if request in self.work:
                    yield from self._hear(request, sender, None)

    def on_timer(self, request: Hashable) -> Iterator[Effect]:
        """Refuse a call that has had no effect, and resend the copy of any other.

        It resends after the response, too, until all have kept it.

        A write that is being kept must not be refused: it is on this disk, and perhaps
        on others. Suppose node 0 is cut off, keeps x = 1 and reports to its client that
        the write failed. The partition heals, the next read queries nodes 0 and 1,
        finds x = 1 and returns a value whose write was reported as failed. So the
        client gets no response, and node 0 goes on until enough have kept it. A read
        has changed nothing that was not being written anyway.
        """
        work = self.work[request]
        if not work.replied and (work.call.op == "read" or work.chosen is None):
            del self.work[request]
            yield self._refusal(request, work)
        elif work.replied and self._copy(work.call.key) != work.chosen:
            del self.work[request]  # a newer one, which its coordinator resends
        else:
            yield SetTimer(request, self.patience_s)
            for peer in self.peers:
                if peer not in work.heard:
                    yield Send(peer, Keep(request, work.call.key, work.chosen))

    def _refusal(self, request, work):
        some, of = len(work.heard), self.replicas
        return Refuse(
            request, f"only {some} of {of} replicas answer{'s' * (some == 1)}"
        )

    def _hear(self, request, sender, copy) -> Iterable[Effect]:
        """Count a reply; with enough of them go on to keep, or reply to the client."""
        work = self.work[request]
        work.heard[sender] = copy  # by sender: a message that comes twice counts once
        if not work.replied:
            yield from self._go_on(request, work)
        if work.replied and self._is_finished(work):
            yield from self._end(request, work)

    def _is_finished(self, work):
        return work.chosen is None or len(work.heard) >= self.replicas

    def _end(self, request, work):
        self.work.pop(request, None)
        yield CancelTimer(request)

    def _go_on(self, request, work):
        if work.chosen is not None:
            if len(work.heard) >= self._needed(work):
                yield from self.answer(request, work.chosen)
        elif work.call.op == "read":
            newest = self.newest(work.heard)
            if newest is not None:
                yield from self.found(request, newest)
        elif len(work.heard) > self.replicas - self.writes:
            # That many replicas include one that keeps the last acknowledged write.
            # Another write may have come through this node since its copy was taken.
            heard = [*work.heard.values(), self._copy(work.call.key)]
            yield from self.have_kept(request, self.written(heard, work.call.value))

    def _needed(self, work):
        """Return the number of replicas that must have a copy before the response."""
        return self.writes

    def written(self, heard: Iterable[Copy], value: Any) -> Copy:
        """Return a copy of a new value, with a version above all that were heard."""
        return Copy(Version(1 + max(c.version.counter for c in heard), self.me), value)

    def merged(self, mine: Copy, theirs: Copy) -> Copy:
        """Return the copy that stays of two: the newer one."""
        return theirs if theirs.version > mine.version else mine

    def newest(self, heard: dict[int, Copy]) -> Copy | None:
        """Return the newest copy that a read quorum has; None before it has replied.

        heard: replica -> its copy, of those that have replied so far.
        """
        if len(heard) < self.reads:
            return None
        return reduce(self.merged, heard.values())

    def found(self, request: int, copy: Copy) -> Iterator[Effect]:
        """Go on with a read that has found the newest copy: write it back first."""
        if self.write_back:
            yield from self.have_kept(request, copy)
        else:
            yield from self.answer(request, copy)

    def have_kept(self, request: int, copy: Copy) -> Iterator[Effect]:
        """Have all replicas keep a copy; a write quorum of them is enough to reply."""
        work = self.work[request]
        key = work.call.key
        work.chosen, work.heard, work.stands_in = copy, {}, {}
        here = self.me in self.replicas_of(key)
        if here:
            yield from self._keep(key, copy)
        yield from self._send(key, Keep(request, key, copy))
        if here:
            yield from self._hear(request, self.me, None)

    def answer(self, request: int, copy: Copy) -> Iterator[Effect]:
        """Reply to the client: to a read with the value of `copy`."""
        work = self.work[request]
        work.replied = True
        yield Reply(request, copy.value if work.call.op == "read" else None)

    def _keep(self, key, copy):
        merged = self.merged(self.copies.get(key, self.nothing), copy)
        if merged != self.copies.get(key, self.nothing):
            self.copies[key] = merged
            yield Save(repr(key), (key, merged))

    def _copy(self, key):
        return self.copies.get(key, self.nothing)
