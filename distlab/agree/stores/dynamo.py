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
from typing import Any, Literal, NamedTuple
from zlib import crc32

from distlab.agree.merkle import MerkleTree, children
from distlab.agree.stores.quorum import Ask, Coordination, CopyStored, Keep, Quorum
from distlab.agree.stores.store import Copy, Version
from distlab.errors import InvalidArgument
from distlab.network import Effect, Refuse, Reply, Save, Send, SetTimer
from distlab.trace import Call

__all__ = ["ByClock", "ByVersion", "DynamoStore", "preference_list"]


def preference_list(key: Any, nodes: int) -> tuple[int, ...]:
    """Return all nodes in the order in which they are to hold a key: ring order.

    The nodes stand on a ring at equal distances, and the key's hash says where to
    begin. The first N are the key's homes, the others stand in for them.
    """
    first = crc32(repr(key).encode()) % nodes
    return tuple((first + step) % nodes for step in range(nodes))


class Timestamp(NamedTuple):
    """The reading of a coordinator's clock as a version; node breaks a tie."""

    clock_s: float
    node: int

    def __repr__(self):
        return f"{self.clock_s:.3f} s at {self.node}"


class ByVersion:
    """Last-writer-wins by logical time stamp: a write asks a quorum for versions first.

    A resolution of conflicts has these four, of which `merged` must be commutative,
    associative and idempotent. reads_first: True if `written` needs a quorum's copies.
    """

    nothing: Any = Copy(Version(0, -1), None)
    reads_first = True

    def written(self, known: Any, value: Any, node: int, clock_s: float) -> Any:
        """Return the state after a write whose coordinator knew of this state."""
        return Copy(Version(known.version.counter + 1, node), value)

    def merged(self, mine: Any, theirs: Any) -> Any:
        """Return the later copy; with equal versions, that of the greater value."""
        return max(mine, theirs, key=lambda copy: (copy.version, repr(copy.value)))

    def shown(self, held: Any) -> Any:
        """Return the value that a client reads."""
        return held.value


class ByClock(ByVersion):
    """Last-writer-wins by the coordinator's clock, as in Cassandra.

    It saves a round trip, and trusts the clocks: a write whose coordinator's clock is
    behind is discarded for an earlier one, although it was acknowledged.
    """

    nothing = Copy(Timestamp(float("-inf"), -1), None)
    reads_first = False

    def written(self, known: Any, value: Any, node: int, clock_s: float) -> Any:
        """Return a copy with a time stamp."""
        return Copy(Timestamp(clock_s, node), value)


class KeepFor(NamedTuple):
    """Coordinator to a node that stands in: keep a copy, with a hint to its home."""

    request: Hashable
    home: int
    key: Any
    copy: Any


class TreeHashes(NamedTuple):
    """Replica to replica: hashes of its Merkle tree, pairs (place, hash) of a level."""

    level: int
    hashes: tuple[tuple[int, bytes], ...]


class LeafItems(NamedTuple):
    """Replica to replica: its items in these leaves, which differ; () asks for none."""

    leaves: tuple[int, ...]
    items: tuple[tuple[Any, Any], ...]


class Hint(NamedTuple):
    """A copy that this node keeps until its home has it."""

    home: int
    key: Any
    copy: Any


class DynamoStore(Quorum):
    """A store whose calls need any R and W of a key's N homes, and no majority.

    copies, reads, writes: N, R and W.
    sloppy: True if the next nodes of the preference list stand in for silent homes;
        their replies count. R + W > N then no longer makes the quorums intersect.
    handoff: True if copies for silent homes are kept as hints on disk, by who stands
        in or by the coordinator, and delivered every `handoff_s` until they arrive.
    read_repair: "off"; "async": after the response the newest copy is sent to the homes
        that were behind; "blocking": those among the R have it before the response.
    anti_entropy: True if every `anti_entropy_s` a node compares Merkle trees with a
        random peer, for the keys of which both are homes.
    conflicts: what stays of two concurrent writes, and what a client reads (`ByClock`,
        `ByVersion`).

    A write that too few homes acknowledge gets no response: its outcome is unknown, and
    what it has left on some of them stays. The replicas are trusted: the value that one
    makes up, under a high version, is read, and repaired into all others.
    Cost: 2 one-way delays for a read or a write, none if the coordinator is enough.
    Source: DeCandia et al. 2007; blocking read repair: Cassandra.
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
        conflicts: ByVersion = ByClock(),  # noqa: B008, it has no state
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
        self.hints: dict[int, Hint] = {}  # number -> what its home still lacks
        self.hinted = 0  # hints so far: the last number
        self.stamped_s = float("-inf")  # the last time stamp that this node has given

    def replicas_of(self, key: Any) -> Sequence[int]:
        """Return the N homes of a key."""
        return preference_list(key, len(self.peers) + 1)[: self.replicas]

    def on_start(self, saved: dict[str, Any]) -> Iterator[Effect]:
        """Load copies and hints, and begin to hand off and to compare."""
        hints = {name: v for name, v in saved.items() if name.startswith("hint ")}
        self.hints = {int(n.split()[1]): Hint(*v) for n, v in hints.items() if v}
        self.hinted = len(hints)
        self.copies = dict(v for name, v in saved.items() if name not in hints)
        if self.hints and self.handoff:
            yield SetTimer("handoff", self.handoff_s)
        if self.anti_entropy and self.peers:
            yield SetTimer("anti-entropy", self.anti_entropy_s)

    def serve(self, request: int, call: Call) -> Iterator[Effect]:
        """Ask the homes for their copies, or have them keep a written one at once."""
        if call.op == "read" or self.conflicts.reads_first:
            yield from super().serve(request, call)
            return
        self.work[request] = Coordination(call)
        yield SetTimer(request, self.patience_s)
        copy = self.written([self._copy(call.key)], call.value)
        yield from self.have_kept(request, copy)

    def written(self, heard: Iterable, value: Any) -> Any:
        """Return the state after a write by this node; its time stamps never repeat."""
        self.stamped_s = max(self.clock_s, self.stamped_s + 1e-6)
        return self.conflicts.written(
            self._newest_of(heard), value, self.me, self.stamped_s
        )

    def merged(self, mine: Any, theirs: Any) -> Any:
        """Return what stays of two copies."""
        return self.conflicts.merged(mine, theirs)

    def newest(self, heard: dict[int, Any]) -> Any:
        """Return the merged copies of a read quorum; None before it has replied."""
        return self._newest_of(heard.values()) if len(heard) >= self.reads else None

    def _newest_of(self, copies):
        newest = self.nothing
        for copy in copies:
            newest = self.merged(newest, copy)
        return newest

    def acknowledgements(self, work: Coordination) -> int:
        """Return W for a write, R for a read that repairs those whom it has asked."""
        return self.writes if work.call.op == "write" else self.reads

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
                yield from self._hold(Hint(home, key, copy))
                yield Send(sender, CopyStored(request))
            case CopyStored(("hint", number)):
                if self.hints.pop(number, None):
                    yield Save(f"hint {number}", None)
            case TreeHashes(level, hashes):
                yield from self._compare(sender, level, hashes)
            case LeafItems(leaves, items):
                yield from self._exchange(sender, leaves, items)
            case _:
                yield from super().on_message(sender, message)

    def on_timer(self, name: Hashable) -> Iterator[Effect]:
        """Hand off, compare trees, or go on with a call that lacks replies."""
        if name == "handoff":
            for number, (home, key, copy) in self.hints.items():
                yield Send(home, Keep(("hint", number), key, copy))
            if self.hints:
                yield SetTimer("handoff", self.handoff_s)
        elif name == "anti-entropy":
            yield SetTimer("anti-entropy", self.anti_entropy_s)
            peer = self.random.choice(self.peers)
            root = self._tree(peer).hashes(0, [0])
            yield Send(peer, TreeHashes(0, root))
        else:
            yield from self._overdue(name, self.work[name])

    # Sloppy quorum and hinted handoff

    def _overdue(self, request, work):
        """Have the next nodes stand in for silent homes; without any, end the call."""
        reading = work.chosen is None or work.call.op == "read"
        silent = [n for n in self.replicas_of(work.call.key) if n not in work.heard]
        silent = [home for home in silent if home not in work.stands_in.values()]
        if self.sloppy and not (reading and work.replied):
            others = preference_list(work.call.key, len(self.peers) + 1)
            unused = [n for n in others[self.replicas :] if n not in work.stands_in]
            if pairs := list(zip(unused, silent, strict=False)):
                work.stands_in.update(pairs)
                yield SetTimer(request, self.patience_s)
                for node, home in pairs:
                    yield from self._ask_to_stand_in(request, work, node, home)
                return
        del self.work[request]
        if reading and work.replied:
            yield from self._repair(request, work)
        elif reading:
            some, of = len(work.heard), self.replicas
            why = f"only {some} of {of} replicas answer{'s' * (some == 1)}"
            yield Refuse(request, why)
        elif self.handoff:
            for home in silent:
                yield from self._hold(Hint(home, work.call.key, work.chosen))

    def _ask_to_stand_in(self, request, work, node, home):
        key, copy = work.call.key, work.chosen
        if node != self.me:
            ask = copy is None
            message = Ask(request, key) if ask else KeepFor(request, home, key, copy)
            yield Send(node, message)
            return
        if copy is not None:
            yield from self._hold(Hint(home, key, copy))
        yield from self._hear(request, self.me, self._copy(key))

    def _hold(self, hint):
        if hint not in self.hints.values():  # its message may come twice
            self.hinted += 1
            self.hints[self.hinted] = hint
            yield Save(f"hint {self.hinted}", tuple(hint))
            if self.handoff:
                yield SetTimer("handoff", self.handoff_s)

    def _copy(self, key):
        """Return this node's state of a key, hinted copies included."""
        hinted = [hint.copy for hint in self.hints.values() if hint.key == key]
        return self._newest_of([self.copies.get(key, self.nothing), *hinted])

    # Read repair

    def found(self, request: int, copy: Any) -> Iterator[Effect]:
        """Reply to a read; if it repairs and blocks, once the R homes have the copy."""
        work = self.work[request]
        behind = self._behind(work, copy) if self.read_repair == "blocking" else []
        if not behind:
            yield from self.answer(request, copy)
            return
        work.chosen = copy
        for node in behind:
            del work.heard[node]
            yield from self._bring(node, Keep(request, work.call.key, copy))
        if self.me in behind:
            yield from self._hear(request, self.me, None)

    def is_finished(self, work: Coordination) -> bool:
        """Return True if the homes that this call may still repair have replied."""
        if work.call.op == "write" or self.read_repair == "async":
            return len(work.heard) >= self.replicas
        return True

    def _hear(self, request, sender, copy):
        work = self.work[request]
        yield from super()._hear(request, sender, copy)
        if request not in self.work and work.call.op == "read":
            yield from self._repair(request, work)

    def _repair(self, request, work):
        if self.read_repair == "async":
            newest = self._newest_of(work.heard.values())
            for node in self._behind(work, newest):
                yield from self._bring(node, Keep(request, work.call.key, newest))

    def _behind(self, work, newest):
        homes = self.replicas_of(work.call.key)
        return [n for n in homes if n in work.heard and work.heard[n] != newest]

    def _bring(self, node, keep):
        if node == self.me:
            yield from self._keep(keep.key, keep.copy)
        else:
            yield Send(node, keep)

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
            hashes = tree.hashes(level + 1, children(places))
            yield Send(sender, TreeHashes(level + 1, hashes))
        elif places:
            yield Send(sender, LeafItems(tuple(places), tree.items(places)))

    def _exchange(self, sender, leaves, items):
        for key, copy in items:
            yield from self._keep(key, copy)
        theirs = dict(items)
        mine = self._tree(sender).items(leaves)
        lacks = tuple((k, copy) for k, copy in mine if theirs.get(k) != copy)
        if lacks:
            yield Send(sender, LeafItems((), lacks))
