"""`Raft`: a log that all members agree on, with one method for each rule.

    client ─▶ leader: propose ─ AppendEntries ─▶ followers: fits, merged, persist
              leader ◀────────── AppendReply ─── followers
              leader: may_commit ─▶ apply ─▶ client

Source: Ongaro and Ousterhout (2014), sections 5.3, 5.4 and 7; the dissertation of
Ongaro (2014), sections 3.10 (transfer) and 6.4 (reads).
"""

import math
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

from distlab.agree.raft.election import LEADER, LeaderElection
from distlab.agree.raft.messages import (
    AppendEntries,
    AppendReply,
    InstallSnapshot,
    Members,
    RaftEntry,
    RaftSnapshot,
    TimeoutNow,
)
from distlab.errors import InvalidArgument
from distlab.network import (
    Append,
    Effect,
    Note,
    Refuse,
    Reply,
    Save,
    Send,
    SetTimer,
    Truncate,
)
from distlab.trace import Call

__all__ = ["Raft"]


class Raft(LeaderElection):
    """A node that replicates a log; a rule is taken out by overriding its method.

    snapshot_every: entries between two snapshots; None for no snapshots.

    A subclass has `serve(request, call)`, which a leader calls for each client, and the
    state: `apply(entry)` and `value(call)` return results, or the first a `Refuse`;
    `state()` returns a copy, and `restore(state)` replaces it. `RaftStore` is one.

    commit: the highest index known to be committed. applied: the highest applied.
        Invariant: applied <= commit <= the log's last index; neither falls.
    waiting: request -> (index, term) of the entry whose result it gets.

    Of a leader, set anew in each of its terms:
    first: the index of the entry with which it began its term.
    next: of each peer, the index to send next. match: the highest known to be durable
        there. Invariant: match < next, and match never falls.
    flying: peer -> the first index under way; no more are sent to it until it replies.
    round: of messages, the last one's number; it rises, from 0 again after a restart.
        acked: the last that each peer has replied to in this term. active: the peers
        that replied since the last check.
    sent_s: round -> this node's clock. expired: the last round whose lease is over.
    reads: request -> (call, index, round): served once the index is applied, and a
        majority has replied to the round.
    target: the node to which leadership is being transferred.
    """

    most_entries = 100  # in one message
    lease_share = 0.75  # of the shortest time-out: clock rates may differ by 1/4

    def __init__(
        self, me: int, peers: Sequence[int], *, snapshot_every: int | None = None, **how
    ):
        super().__init__(me, peers, **how)
        if snapshot_every is not None and snapshot_every < 1:
            raise InvalidArgument(
                f"snapshot_every={snapshot_every!r}: give a number of entries from 1."
            )
        self.snapshot_every = snapshot_every
        self.waiting, self.reads, self.target = {}, {}, None
        self.round = 0

    def on_start(self, saved: dict[str, Any]) -> Iterator[Effect]:
        """Begin as a follower, with the snapshot's state."""
        yield from super().on_start(saved)
        self.commit = self.applied = self.log.base
        if self.log.base:
            self.restore(self.log.snapshot.state)
        if len(saved.get("log", ())) != len(self.log.entries):
            yield from self.persist(Save("log", list(self.log.entries)))

    def on_timer(self, name: Hashable) -> Iterator[Effect]:
        """Send heartbeats, check the quorum, or note that a lease is over."""
        if name == "heartbeat":
            silent = [peer for peer in self.receivers() if peer in self.flying]
            yield from self.replicate()
            for peer in silent:
                yield from self.probe(peer)
        elif type(name) is tuple:
            self.expired = max(self.expired, name[1])
        elif name == "election" and self.role == LEADER:
            yield from self.check_quorum()
        else:
            yield from super().on_timer(name)

    def on_client(self, request: int, call: Call) -> Iterator[Effect]:
        """Serve a client as the leader; its request may be one that it repeats."""
        if self.role == LEADER and request in self.waiting:
            index, term = self.waiting[request]
            if self.log.term(index) == term:
                return  # its entry is still on its way
        for calls in (self.waiting, self.reads, self.unrouted):
            calls.pop(request, None)
        if self.role == LEADER and self.target is None:
            yield from self.serve(request, call)
        else:
            yield from super().on_client(request, call)

    # leading

    def lead(self) -> Iterator[Effect]:
        """Lead this term: begin with an entry of it, so that one can be committed."""
        self.role, self.leader, self.heard, self.target = LEADER, self.me, True, None
        self.next, self.match, self.acked, self.sent_s = {}, {}, {}, {}
        self.active, self.flying = set(), {}
        self.expired, self.first = self.round, self.log.last + 1
        yield Note(f"leader of term {self.term}")
        yield from self.propose(0, None)
        yield from self.go_on()

    def go_on(self) -> Iterator[Effect]:
        """Lead until the next check of the quorum; serve the clients that wait."""
        self.active, self.target = set(), None
        yield SetTimer("election", self.timeout_s[1])
        unrouted, self.unrouted = self.unrouted, {}
        for request, call in unrouted.items():
            yield from self.serve(request, call)

    def check_quorum(self) -> Iterator[Effect]:
        """Step down unless a majority has replied since the last check."""
        if self.is_quorum(self.active | {self.me}):
            yield from self.go_on()
        else:
            yield from self.step_down(self.term)

    def step_down(self, term: int) -> Iterator[Effect]:
        """Become a follower; another leader serves the reads."""
        self.unrouted.update(
            (request, call) for request, (call, *_) in self.reads.items()
        )
        self.reads.clear()
        yield from super().step_down(term)

    def propose(self, request: int, command: Any) -> Iterator[Effect]:
        """Append an entry to the log, and send it to all while it is written."""
        entry = RaftEntry(self.term, self.log.last + 1, request, command)
        if request:
            self.waiting[request] = entry.index, entry.term
        yield from self.append((entry,))
        yield from self.replicate()
        yield from self.when_durable()

    def replicate(self) -> Iterator[Effect]:
        """Send each peer what it lacks, or a heartbeat; begin a round if one is needed.

        A peer that has not replied yet gets no message: what comes meanwhile shares the
        next one.
        """
        yield SetTimer("heartbeat", self.heartbeat_s)
        if self.lease or self.reads:
            self.round += 1
        if self.lease:
            confirmed = self.confirmed()
            self.sent_s = {r: s for r, s in self.sent_s.items() if r >= confirmed}
            self.sent_s[self.round] = self.clock_s
            yield SetTimer(("lease", self.round), self.lease_s)
        for peer in self.receivers():
            if peer not in self.flying:
                yield from self.send_entries(peer)

    def receivers(self) -> list[int]:
        """Return the nodes that get entries."""
        return self.others()

    def send_entries(self, peer: int) -> Iterator[Effect]:
        """Send a peer the entries from `next` on, or the snapshot that has them."""
        log, first = self.log, self.next.setdefault(peer, self.log.last)
        self.match.setdefault(peer, 0)
        self.flying[peer] = first
        if first <= log.base:
            self.next[peer] = log.base + 1
            yield Send(peer, InstallSnapshot(self.term, log.snapshot, self.round))
            return
        entries = log.since(first, self.most_entries)
        self.next[peer] = first + len(entries)
        yield Send(peer, self.after(first - 1, entries))

    def probe(self, peer: int) -> Iterator[Effect]:
        """Ask a peer that has not replied for what it has; what was sent may be lost.

        It may be dead or slow: it gets no entries and no snapshot until it replies.
        """
        self.next[peer] = self.flying[peer]
        yield Send(peer, self.after(max(self.next[peer] - 1, self.log.base), ()))

    def after(self, previous: int, entries: tuple[RaftEntry, ...]) -> AppendEntries:
        """Return the message with the entries after an index."""
        about = self.term, previous, self.log.term(previous), entries
        return AppendEntries(*about, self.commit, self.round)

    def matched(self, peer: int, reply: AppendReply) -> int:
        """Return the index up to which a peer's log agrees, by its reply."""
        return reply.last

    def on_append_reply(self, sender: int, reply: AppendReply) -> Iterator[Effect]:
        """Note what a peer has; commit, serve reads, and send it what it lacks."""
        if not self.is_current(reply) or self.role != LEADER or reply.round < 0:
            return
        match = self.match.get(sender, 0)
        if reply.fits:
            match = self.match[sender] = max(match, self.matched(sender, reply))
            self.next[sender] = max(self.next.get(sender, 1), match + 1)
        elif reply.last >= match:  # else it is late
            self.next[sender] = reply.last + 1
        self.acked[sender] = max(self.acked.get(sender, 0), reply.round)
        self.active.add(sender)
        self.flying.pop(sender, None)
        yield from self.commit_more()
        yield from self.serve_reads()
        if self.role == LEADER and sender in self.receivers():
            yield from self.send_more(sender, reply)

    def send_more(self, peer, reply):
        """Send what was not sent before the reply, or what it says is missing."""
        behind = self.next[peer] <= self.log.last
        late = bool(self.reads) and reply.round < self.round
        if peer not in self.flying and (behind or late):
            yield from self.send_entries(peer)
        if peer == self.target and self.match[peer] == self.log.last:
            self.expired = math.inf  # no lease from now on: the election begins at once
            yield Send(peer, TimeoutNow(self.term))

    def may_commit(self, index: int) -> bool:
        """Return True for an entry of this term (section 5.4.2).

        An older one that a majority has can still be replaced by the leader of a later
        term; it is committed with the first entry of this term.
        """
        return self.log.term(index) == self.term

    def commit_more(self) -> Iterator[Effect]:
        """Commit the entries that a majority of the members has on disk."""
        index = self.by_quorum(self.match)
        if index > self.commit and self.may_commit(index):
            yield from self.apply_up_to(index)
            if self.me not in self.members and self.members_at <= self.commit:
                yield from self.step_down(self.term)

    def on_own_entries(self, last: int) -> Iterator[Effect]:
        """Count one's own entries, now that they are durable."""
        self.match[self.me] = max(self.match.get(self.me, 0), last)
        yield from self.commit_more()

    def by_quorum(self, known: dict[int, int]) -> int:
        """Return the greatest number that a majority of the members has reached."""
        numbers = sorted(known.get(member, 0) for member in self.members)
        return numbers[(len(numbers) - 1) // 2]

    # following

    def fits(self, previous: int, previous_term: int) -> bool:
        """Return True if this log has the entry before the new ones.

        Then all before it agree, too; what a snapshot covers is committed.
        """
        return previous < self.log.base or self.log.term(previous) == previous_term

    def merged(self, previous: int, entries: Sequence[RaftEntry]) -> tuple:
        """Return (last index to keep, entries to append): cut only at a conflict.

        A message that comes late may have only a part of what is here.
        """
        for at, entry in enumerate(entries):
            if entry.index > self.log.base and self.differs(entry):
                return entry.index - 1, entries[at:]
        return self.log.last, ()

    def differs(self, entry: RaftEntry) -> bool:
        """Return True unless this log has an entry of that index and term."""
        return self.log.term(entry.index) != entry.term

    def on_append_entries(self, sender: int, sent: AppendEntries) -> Iterator[Effect]:
        """Take a leader's entries, if they fit."""
        if sent.term < self.term:
            yield Send(sender, AppendReply(self.term, False, 0, -1))
            return
        yield from self.follow(sender)
        fits = self.fits(sent.previous, sent.previous_term)
        last = sent.previous + len(sent.entries)
        if fits:
            kept, new = self.merged(sent.previous, sent.entries)
            if kept < self.log.last:
                yield from self.cut(kept)
            if new:
                yield from self.append(new)
            yield from self.apply_up_to(min(sent.commit, last))
        else:
            last = self.last_that_may_fit(sent.previous)
        reply = AppendReply(self.term, fits, last, sent.round)
        yield from self.when_durable(Send(sender, reply))

    def last_that_may_fit(self, previous: int) -> int:
        """Return an index below `previous`; skip the term that conflicts (5.3)."""
        last, term = min(previous - 1, self.log.last), self.log.term(previous)
        while last > self.commit and self.log.term(last) == term:
            last -= 1
        return last

    def append(self, entries: Sequence[RaftEntry]) -> Iterator[Effect]:
        """Append entries to this node's log; follow a change of members at once."""
        if self.snapshot_every and self.applied - self.log.base >= self.snapshot_every:
            _, members = self.log.members(self.applied)
            about = self.applied, self.log.term(self.applied), members
            yield from self.install(RaftSnapshot(*about, self.state()))
        self.log.entries.extend(entries)
        for entry in entries:
            if type(entry.command) is Members:
                self.members_at, self.members = entry.index, entry.command.nodes
        yield from self.persist(*(Append("log", entry) for entry in entries))

    def cut(self, kept: int) -> Iterator[Effect]:
        """Remove the entries after index `kept`, which no majority has."""
        self.log.cut(kept)
        self.members_at, self.members = self.log.members(kept)
        yield from self.persist(Truncate("log", kept - self.log.base))

    # the state machine, and snapshots of it

    def apply_up_to(self, commit: int) -> Iterator[Effect]:
        """Raise the commit index; apply each entry once, in order."""
        self.commit = max(self.commit, commit)
        while self.applied < self.commit:
            entry = self.log.entry(self.applied + 1)
            self.applied = entry.index
            changed = type(entry.command) is Members
            result = entry.command.nodes if changed else self.apply(entry)
            yield from self.answer(entry, result)
        yield from self.serve_reads()

    def answers(self, entry: RaftEntry, term: int) -> bool:
        """Return True if an entry is the one that was proposed in a term."""
        return entry.term == term

    def answer(self, entry: RaftEntry, result: Any) -> Iterator[Effect]:
        """Reply to the client of an entry; not if another entry is in its place."""
        for request, (index, term) in list(self.waiting.items()):
            if index <= entry.index:
                del self.waiting[request]
                if index == entry.index and self.answers(entry, term):
                    refused = type(result) is Refuse
                    yield result if refused else Reply(request, result)

    def install(self, snapshot: RaftSnapshot) -> Iterator[Effect]:
        """Write a snapshot, then the entries that follow it."""
        self.log.compact(snapshot)
        self.members_at, self.members = self.log.members(self.log.last)
        rest = Save("log", list(self.log.entries))
        yield from self.persist(Save("snapshot", snapshot), rest)

    def on_install_snapshot(self, sender: int, sent: InstallSnapshot) -> Iterator:
        """Take the leader's snapshot in place of entries that it has no more."""
        if sent.term < self.term:
            yield Send(sender, AppendReply(self.term, False, 0, -1))
            return
        yield from self.follow(sender)
        snapshot = sent.snapshot
        if snapshot.index > self.commit:
            yield from self.install(snapshot)
            self.restore(snapshot.state)
            self.commit = self.applied = snapshot.index
        reply = AppendReply(self.term, True, snapshot.index, sent.round)
        yield from self.when_durable(Send(sender, reply))

    # reads

    def read(self, request: int, call: Call) -> Iterator[Effect]:
        """Serve a read with all that is committed now, without an entry for it.

        It waits until a majority confirms that this node leads still, in a round that
        begins after it.
        """
        self.reads[request] = call, max(self.commit, self.first), self.round + 1
        yield from self.serve_reads()

    def confirmed(self) -> int:
        """Return the last round that a majority has replied to."""
        return self.by_quorum(self.acked | {self.me: self.round})

    def may_read(self, round: int) -> bool:
        """Return True if a majority has replied to a round, or during a lease."""
        return self.confirmed() >= round or (self.lease and self.lease_holds())

    @property
    def lease_s(self) -> float:
        """The duration of a lease, from the start of a round on."""
        return self.lease_share * self.timeout_s[0]

    def lease_holds(self) -> bool:
        """Return True while no majority can have elected another leader.

        By a timer, as a clock may jump back, and by the clock, as a process that was
        paused finds its timers late.
        """
        round = self.confirmed()
        until_s = self.sent_s.get(round, -math.inf) + self.lease_s
        return self.expired < round and self.clock_s < until_s

    def serve_reads(self) -> Iterator[Effect]:
        """Serve the reads that may be; begin a round for others after the last."""
        if not self.reads or self.role != LEADER:
            return
        for request, (call, index, round) in list(self.reads.items()):
            if self.applied >= index and self.may_read(round):
                del self.reads[request]
                yield Reply(request, self.value(call))
        new = any(round > self.round for _, _, round in self.reads.values())
        if new and self.confirmed() == self.round:
            yield from self.replicate()
            if not self.others():
                yield from self.serve_reads()

    def transfer(self, request: int, target: int) -> Iterator[Effect]:
        """Make another member the leader (section 3.10); clients wait meanwhile."""
        if target not in self.others():
            yield Refuse(request, f"node {target} is no other member")
            return
        yield Reply(request)
        self.target = target
        self.flying.pop(target, None)
        yield from self.replicate()
