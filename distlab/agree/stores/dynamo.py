"""A leaderless store in the style of Dynamo: N of the nodes hold a key.

    ring of nodes      0   1   2   3   4      a key's preference list begins where
                           N = 3 homes        its hash falls: here 1 2 3 | 4 0

    write  ─ Keep ───▶ homes ─ CopyStored ─▶ W of them have it: reply
    read   ─ Ask ────▶ homes ─ Have ───────▶ R have answered: the newest copy

and four mechanisms, each of which can be left out:

    sloppy quorum      ─ KeepFor ────▶ the next node of the list, for a silent home
    hinted handoff     ─ Keep ───────▶ that home, later, from whoever holds the hint
    read repair        ─ Keep ───────▶ homes whose copies a read has found behind
    anti-entropy       ─ TreeHashes ─▶ a random peer ─ ... ─ LeafItems: what differs
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import reduce
from typing import Any, Literal, NamedTuple
from zlib import crc32

from distlab.agree.merkle import MerkleTree, children
from distlab.agree.stores.quorum import Ask, Coordination, CopyStored, Keep, Quorum
from distlab.agree.stores.store import NOTHING, Copy, Version
from distlab.errors import InvalidArgument
from distlab.network import Effect, Reply, Save, Send, SetTimer
from distlab.trace import Call

__all__ = ["DynamoStore", "HandoffHint", "Keep", "LastWrite", "preference_list"]


def preference_list(key: Any, nodes: int) -> tuple[int, ...]:
    """Return all nodes in the order in which they are to hold a key: ring order.

    The nodes stand on a ring at equal distances, and the key's hash says where to
    begin. The first N are the key's homes, the others stand in for them.
    """
    first = crc32(repr(key).encode()) % nodes
    return tuple((first + step) % nodes for step in range(nodes))


class LastWrite:
    """Resolution of conflicts by last-writer-wins: the later of two copies stays.

    by: "clock", the coordinator's, in microseconds: it saves a round trip, and a write
        whose coordinator's clock is behind is discarded for an earlier one; or
        "version": a write first asks a quorum for the versions that it has to exceed.

    Another resolution has the same three methods, `nothing` for a key never written,
    and `asks_first`: whether `written` needs to know a quorum's copies.
    Invariant: `merged` is commutative, associative and idempotent.
    """

    nothing: Any = NOTHING

    def __init__(self, by: Literal["clock", "version"] = "clock"):
        if by not in ("clock", "version"):
            raise InvalidArgument(f'by={by!r}: it is "clock" or "version".')
        self.by, self.asks_first = by, by == "version"

    def __repr__(self):
        return f"{type(self).__name__}({self.by!r})"

    def written(self, known: Any, value: Any, node: int, clock_us: int) -> Any:
        """Return the state after a write whose coordinator knew of this state."""
        counter = known.version.counter + 1 if self.asks_first else clock_us
        return Copy(Version(counter, node), value)

    def merged(self, mine: Any, theirs: Any) -> Any:
        """Return the later copy; of two with one version, that of the greater value."""
        return max(mine, theirs, key=lambda copy: (copy.version, repr(copy.value)))

    def shown(self, held: Any) -> Any:
        """Return the value that a client reads."""
        return held.value


class KeepFor(NamedTuple):
    """Coordinator to a node that stands in: keep a copy, with a hint to its home."""

    request: Hashable
    home: int
    key: Any
    copy: Any


class HandoffHint(NamedTuple):
    """A copy for a silent home; the request of the `Keep` that delivers it."""

    home: int
    key: Any
    copy: Any

    def __repr__(self):
        return f"hint to {self.home}"


class TreeHashes(NamedTuple):
    """Replica to replica: hashes of its Merkle tree, pairs (place, hash) of a level."""

    level: int
    hashes: tuple[tuple[int, bytes], ...]


class LeafItems(NamedTuple):
    """Replica to replica: its items in these leaves, which differ; () asks for none."""

    leaves: tuple[int, ...]
    items: tuple[tuple[Any, Any], ...]


class DynamoStore(Quorum):
    """A store whose calls need R or W of a key's N homes, whichever nodes these are.

    copies, reads, writes: N, R and W.
    sloppy: True if the next nodes of the preference list stand in for silent homes, and
        their replies count. R + W > N then no longer makes quorums intersect.
    handoff: True if copies for silent homes are delivered, every `handoff_s`, until
        they arrive, by the node that stands in, or else by the coordinator.
    read_repair: "off"; "async": the newest copy goes to the homes that were behind
        after the response; "blocking": to those among the R before it.
    anti_entropy: True if every `anti_entropy_s` a node compares Merkle trees with a
        random peer, over the keys of which both are homes.
    conflicts: what stays of two concurrent writes; see `LastWrite`.

    A write that too few acknowledge gets no response, and stays where it has arrived.
    Replicas are trusted: a value that one makes up, under a high version, is read, and
    repaired into all the others. Crashes are tolerated, Byzantine failures are not.
    Cost: 2 one-way delays for a read or a write, none if the coordinator is enough.
    Source: DeCandia et al. 2007; blocking read repair: Apache Cassandra.
    """

    handoff_s = anti_entropy_s = 0.5
    tree_depth = 6

    def __init__(
        self,
        me: int,
        peers: Sequence[int],
        *,
        copies: int = 3,
        reads: int = 2,
        writes: int = 2,
        sloppy: bool = False,
        handoff: bool = False,
        read_repair: Literal["off", "async", "blocking"] = "off",
        anti_entropy: bool = False,
        conflicts: Any = LastWrite(),  # noqa: B008, it does not change
    ):
        if copies not in range(1, len(peers) + 2):
            raise InvalidArgument(
                f"copies={copies!r}: of {len(peers) + 1} nodes 1 to {len(peers) + 1} "
                "can hold a key."
            )
        if read_repair not in ("off", "async", "blocking"):
            raise InvalidArgument(
                f'read_repair={read_repair!r}: it is "off", "async" or "blocking".'
            )
        self.replicas, self.nothing = copies, conflicts.nothing
        super().__init__(me, peers, reads=reads, writes=writes)
        self.sloppy, self.handoff, self.read_repair = sloppy, handoff, read_repair
        self.anti_entropy, self.conflicts = anti_entropy, conflicts
        self.hints: dict[tuple, Any] = {}  # (home, key) -> the copy that it may lack
        self.stamped_us = 0  # the last time stamp that this node has given

    def replicas_of(self, key: Any) -> Sequence[int]:
        """Return the N homes of a key."""
        return preference_list(key, len(self.peers) + 1)[: self.replicas]

    def on_start(self, saved: dict[str, Any]) -> Iterator[Effect]:
        """Load copies and hints, and begin to hand off and to compare."""
        for *home, key, copy in filter(None, saved.values()):
            if home:
                self.hints[home[0], key] = copy
            else:
                self.copies[key] = copy
        if self.hints and self.handoff:
            yield SetTimer("handoff", self.handoff_s)
        if self.anti_entropy and self.peers:
            yield SetTimer("anti-entropy", self.anti_entropy_s)

    def serve(self, request: int, call: Call) -> Iterator[Effect]:
        """Ask the homes for their copies, or have them keep a written one at once."""
        if call.op == "read" or self.conflicts.asks_first:
            yield from super().serve(request, call)
            return
        self.work[request] = Coordination(call)
        yield SetTimer(request, self.patience_s)
        copy = self.written([self._copy(call.key)], call.value)
        yield from self.have_kept(request, copy)

    def written(self, heard: Iterable, value: Any) -> Any:
        """Return the state after a write here; this node's time stamps only grow."""
        self.stamped_us = max(round(self.clock_s * 1e6), self.stamped_us + 1)
        known = reduce(self.merged, heard)
        return self.conflicts.written(known, value, self.me, self.stamped_us)

    def merged(self, mine: Any, theirs: Any) -> Any:
        """Return the copy that stays of two, or both of them in one."""
        return self.conflicts.merged(mine, theirs)

    def answer(self, request: int, copy: Any) -> Iterator[Effect]:
        """Reply to the client."""
        work = self.work[request]
        work.replied = True
        shown = self.conflicts.shown(copy) if work.call.op == "read" else None
        yield Reply(request, shown)

    def on_message(self, sender: int, message: Any) -> Iterator[Effect]:
        """Handle hints and trees; the rest as any quorum store."""
        match message:
            case KeepFor(request, home, key, copy):
                yield from self._hold(home, key, copy)
                yield Send(sender, CopyStored(request))
            case CopyStored(HandoffHint(home, key, copy)):
                if self.hints.get((home, key)) == copy:
                    yield from self.forget(home, key)
            case TreeHashes(level, hashes):
                yield from self._compare(sender, level, hashes)
            case LeafItems(leaves, items):
                yield from self._exchange(sender, leaves, items)
            case _:
                yield from super().on_message(sender, message)

    def on_timer(self, name: Hashable) -> Iterator[Effect]:
        """Hand off, compare trees, or go on with a call that lacks replies."""
        if name == "handoff":
            yield from self.hand_off()
            if self.hints:
                yield SetTimer("handoff", self.handoff_s)
        elif name == "anti-entropy":
            yield SetTimer("anti-entropy", self.anti_entropy_s)
            peer = self.random.choice(self.peers)
            yield Send(peer, TreeHashes(0, self._tree(peer).hashes(0, [0])))
        else:
            yield from self._overdue(name, self.work[name])

    # Sloppy quorum and hinted handoff

    def _overdue(self, request, work):
        """Have the next nodes stand in for silent homes; without any, end the call."""
        call, reads = work.call, work.call.op == "read" or work.chosen is None
        done = {*work.heard, *map(work.stands_in.get, work.heard)}
        silent = [home for home in self.replicas_of(call.key) if home not in done]
        pairs = self._stand_ins(work, silent) if not (reads and work.replied) else []
        if pairs:
            work.stands_in.update(pairs)
            yield SetTimer(request, self.patience_s)
            for node, home in pairs:
                keep = KeepFor(request, home, call.key, work.chosen)
                keep = Ask(request, call.key) if work.chosen is None else keep
                yield Send(node, keep)
            return
        yield from self._end(request, work)
        if reads and not work.replied:
            yield self._refusal(request, work)
        elif self.handoff and not reads:
            for home in silent:
                yield from self._hold(home, call.key, work.chosen)

    def _stand_ins(self, work, silent):
        """Return pairs (node, home that it stands in for) of nodes not asked so far."""
        others = preference_list(work.call.key, len(self.peers) + 1)[self.replicas :]
        unused = [node for node in others if node not in work.stands_in]
        return list(zip(unused, silent, strict=False)) if self.sloppy else []

    def _hold(self, home, key, copy):
        copy = self.merged(self.hints.get((home, key), self.nothing), copy)
        self.hints[home, key] = copy
        yield Save(f"hint {home} {key!r}", (home, key, copy))
        if self.handoff:
            yield SetTimer("handoff", self.handoff_s)

    def hand_off(self) -> Iterator[Effect]:
        """Send all hinted copies home; a hint is forgotten once its home has replied.

        Were it forgotten as it is sent, a dropped message would lose the write.
        """
        for (home, key), copy in self.hints.items():
            yield Send(home, Keep(HandoffHint(home, key, copy), key, copy))

    def forget(self, home: int, key: Any) -> Iterator[Effect]:
        """Delete a hint."""
        del self.hints[home, key]
        yield Save(f"hint {home} {key!r}", None)

    def _copy(self, key):
        """Return this node's state of a key, hinted copies included."""
        hinted = [copy for (_, other), copy in self.hints.items() if other == key]
        return reduce(self.merged, hinted, super()._copy(key))

    # Read repair

    def behind(self, heard: dict[int, Any], newest: Any) -> list[int]:
        """Return the nodes to be repaired: those that replied with another copy.

        heard: home -> its copy.
        """
        return [home for home, copy in heard.items() if copy != newest]

    def found(self, request: int, copy: Any) -> Iterator[Effect]:
        """Reply to a read; if it repairs and blocks, once the R homes have the copy."""
        work = self.work[request]
        behind = self._behind(work, copy) if self.read_repair == "blocking" else []
        if not behind:
            yield from self.answer(request, copy)
            return
        work.chosen = copy
        work.heard = {n: None for n in work.heard if n not in behind}
        yield from self._repair(request, work.call.key, behind, copy)
        if self.me in behind:
            yield from self._hear(request, self.me, None)

    def _needed(self, work):
        return self.writes if work.call.op == "write" else self.reads

    def _is_finished(self, work):
        waits = work.call.op == "write" or self.read_repair == "async"
        return not waits or len(work.heard) >= self.replicas

    def _end(self, request, work):
        yield from super()._end(request, work)
        if self.read_repair == "async" and work.call.op == "read" and work.heard:
            newest = reduce(self.merged, work.heard.values())
            behind = self._behind(work, newest)
            yield from self._repair(request, work.call.key, behind, newest)

    def _behind(self, work, newest):
        homes = self.replicas_of(work.call.key)
        return self.behind({n: c for n, c in work.heard.items() if n in homes}, newest)

    def _repair(self, request, key, behind, copy):
        for node in behind:
            if node == self.me:
                yield from self._keep(key, copy)
            else:
                yield Send(node, Keep(request, key, copy))

    # Anti-entropy

    def _tree(self, peer):
        """Return the Merkle tree of the keys of which both are homes."""
        both = {self.me, peer}
        keys = [key for key in self.copies if both <= set(self.replicas_of(key))]
        return MerkleTree({key: self.copies[key] for key in keys}, self.tree_depth)

    def _compare(self, sender, level, hashes):
        tree = self._tree(sender)
        places = tree.differing(level, hashes)
        if places and level < tree.depth:
            below = tree.hashes(level + 1, children(places))
            yield Send(sender, TreeHashes(level + 1, below))
        elif places:
            yield Send(sender, LeafItems(tuple(places), tree.items(places)))

    def _exchange(self, sender, leaves, items):
        for key, copy in items:
            yield from self._keep(key, copy)
        theirs, mine = dict(items), self._tree(sender).items(leaves)
        lacks = tuple((k, copy) for k, copy in mine if theirs.get(k) != copy)
        if lacks:
            yield Send(sender, LeafItems((), lacks))
