"""`LeaderElection`: terms, votes and their persistence; one leader in a term at most.

    follower ─ time-out ─▶ pre-candidate ─ majority ─▶ candidate ─ majority ─▶ leader
       ◀───────────── a leader of the same term, or a higher term ───────────────┘

Source: Ongaro and Ousterhout, "In search of an understandable consensus algorithm"
(2014), section 5.2; Ongaro, "Consensus: bridging theory and practice" (2014, here "the
dissertation"), sections 4.2.3 and 9.6.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

from distlab.agree.raft.log import RaftLog
from distlab.agree.raft.messages import (
    AppendEntries,
    AppendReply,
    InstallSnapshot,
    RequestVote,
    TimeoutNow,
    Vote,
)
from distlab.errors import InvalidArgument, ProtocolBroken
from distlab.network import (
    CancelTimer,
    Effect,
    Node,
    Refuse,
    Save,
    Send,
    SetTimer,
    Sync,
)
from distlab.trace import Call

__all__ = ["CANDIDATE", "FOLLOWER", "LEADER", "PRE_CANDIDATE", "LeaderElection"]

FOLLOWER, PRE_CANDIDATE = "follower", "pre-candidate"
CANDIDATE, LEADER = "candidate", "leader"

_HANDLERS = {
    RequestVote: "on_request_vote",
    Vote: "on_vote",
    AppendEntries: "on_append_entries",
    AppendReply: "on_append_reply",
    InstallSnapshot: "on_install_snapshot",
    TimeoutNow: "on_timeout_now",
}
# Message -> the indexes of its fields that are whole numbers.
_NUMBERS = {
    kind: [at for at, word in enumerate(kind.__annotations__.values()) if word is int]
    for kind in _HANDLERS
}


class LeaderElection(Node):
    """A node that elects leaders; `Raft` adds what a leader does.

    members: the nodes that vote at first; all by default. timeout_s: the shortest and
        the longest election time-out. heartbeat_s: between heartbeats of a leader.
    pre_vote: whether a node asks if it would be elected, before it begins a term.
    lease: whether a leader may serve reads without a message, since a majority has
        promised to elect no other one meanwhile.

    On disk, and durable before a message that depends on it:
    term: the latest that it has seen. Invariant: never falls.
    voted_for: its vote in this term. Invariant: set at most once in a term.
    log: its entries. Invariant: those up to `commit` never change.

    In memory:
    role: FOLLOWER, PRE_CANDIDATE, CANDIDATE or LEADER. leader: of this term, if known.
    heard: whether a leader was heard of within the shortest time-out.
    votes: granted to it in this term. Invariant: its own is there once it is durable.
    members, members_at: by the last change in its log, and the index of that.
    unrouted: request -> call, of clients that wait until a leader is heard of.
    dirty: whether there are writes that no sync has covered. syncing: the sync under
        way, as (term, last index, messages to send then). unsent: the messages that
        wait for the next one.
    """

    def __init__(
        self,
        me: int,
        peers: Sequence[int],
        *,
        members: Iterable[int] | None = None,
        timeout_s: tuple[float, float] = (0.15, 0.3),
        heartbeat_s: float = 0.05,
        pre_vote: bool = True,
        lease: bool = False,
    ):
        super().__init__(me, peers)
        everyone = range(len(peers) + 1)
        self.members = tuple(everyone if members is None else members)
        if not self.members or not {*self.members} <= {*everyone}:
            raise InvalidArgument(
                f"members={members!r}: give some of the nodes 0 to {len(peers)}."
            )
        if not 0 < heartbeat_s < timeout_s[0] <= timeout_s[1]:
            raise InvalidArgument(
                f"heartbeat_s={heartbeat_s!r} and timeout_s={timeout_s!r}: a heartbeat "
                "comes before the shortest time-out, and that before the longest."
            )
        self.timeout_s, self.heartbeat_s = timeout_s, heartbeat_s
        self.pre_vote, self.lease = pre_vote, lease
        # After a crash it may have made a promise to a leader that has a lease.
        self.role, self.leader, self.heard = FOLLOWER, None, lease
        self.votes, self.unrouted = set(), {}
        self.dirty, self.syncing, self.unsent = False, None, []

    def on_start(self, saved: dict[str, Any]) -> Iterator[Effect]:
        """Begin as a follower, with what is on disk."""
        self.term, self.voted_for = saved.get("vote", (0, None))
        self.log = log = RaftLog.load(saved, self.members)
        self.members_at, self.members = log.members(log.last)
        yield SetTimer("heard", self.timeout_s[0])
        yield from self.reset_timer()

    def on_message(self, sender: int, message: Any) -> Iterator[Effect]:
        """Handle a message; a higher term than one's own comes first."""
        if type(message) not in _HANDLERS or not all(
            type(message[at]) is int for at in _NUMBERS[type(message)]
        ):
            raise ProtocolBroken(f"node {sender} sent {message!r}, not of Raft.")
        if self.ignores(message):
            return
        if message.term > self.term:
            yield from self.step_down(message.term)
        if self.resets_timer(message):
            yield from self.reset_timer()
        yield from getattr(self, _HANDLERS[type(message)])(sender, message)

    def on_timer(self, name: Hashable) -> Iterator[Effect]:
        """Ask for votes, or note that no leader was heard of."""
        if name == "heard":
            self.heard = self.role == LEADER
        else:
            yield from self.campaign()

    def on_client(self, request: int, call: Call) -> Iterator[Effect]:
        """Send a client to the leader, once one is heard of."""
        if self.heard and self.leader not in (None, self.me):
            yield self.redirect(request)
        else:
            self.unrouted[request] = call

    def redirect(self, request: int) -> Refuse:
        """Refuse a request, and name the leader."""
        return Refuse(request, f"node {self.leader} is the leader", self.leader)

    # terms and roles

    def ignores(self, message: Any) -> bool:
        """Return True for a vote request while there is a leader (section 4.2.3).

        So neither a removed node nor one that was cut off deposes a leader that works,
        and a leader may rely on its lease.
        """
        asks = type(message) is RequestVote and not message.transfer
        return asks and self.heard

    def resets_timer(self, message: Any) -> bool:
        """Return True for a message of this term's leader; a vote granted does, too."""
        from_leader = type(message) in (AppendEntries, InstallSnapshot)
        return from_leader and message.term == self.term

    def reset_timer(self) -> Iterator[Effect]:
        """Wait for a leader, from now on, for a random time."""
        yield SetTimer("election", self.random.uniform(*self.timeout_s))

    def step_down(self, term: int) -> Iterator[Effect]:
        """Become a follower, of this term or of a higher one."""
        if term > self.term:
            self.term, self.voted_for, self.leader = term, None, None
            yield from self.persist(Save("vote", (self.term, None)))
        if self.role == LEADER:
            self.heard, self.leader = False, None
            yield CancelTimer("heartbeat")
            yield from self.reset_timer()
        self.role = FOLLOWER

    def follow(self, leader: int) -> Iterator[Effect]:
        """Follow the leader of this term; send it the clients that wait."""
        known = self.me if self.role == LEADER else self.leader
        if known not in (None, leader):
            raise ProtocolBroken(
                f"election safety: nodes {known} and {leader} both lead term "
                f"{self.term}: both have sent entries of it"
            )
        self.role, self.leader, self.heard = FOLLOWER, leader, True
        yield SetTimer("heard", self.timeout_s[0])
        for request in self.unrouted:
            yield self.redirect(request)
        self.unrouted.clear()

    # elections

    def campaign(self) -> Iterator[Effect]:
        """Stand for election, if one would be elected (pre-vote, section 9.6)."""
        yield from self.reset_timer()
        if self.me not in self.members:
            return
        if not self.pre_vote:
            yield from self.stand()
            return
        self.role, self.leader, self.votes = PRE_CANDIDATE, None, {self.me}
        for peer in self.others():
            yield Send(peer, self.vote_request(pre=True))
        yield from self.count_votes()

    def stand(self, transfer: bool = False) -> Iterator[Effect]:
        """Begin a term, vote for oneself, and ask all others."""
        self.role, self.leader, self.votes = CANDIDATE, None, set()
        self.term, self.voted_for = self.term + 1, self.me
        yield from self.persist(Save("vote", (self.term, self.me)))
        request = self.vote_request(transfer=transfer)
        yield from self.when_durable(*(Send(peer, request) for peer in self.others()))

    def vote_request(self, **how: bool) -> RequestVote:
        """Return a request for votes, with the end of the log."""
        last = self.log.last
        return RequestVote(self.term, last, self.log.term(last), **how)

    def is_up_to_date(self, request: RequestVote) -> bool:
        """Return True unless this log ends with a later term, or is longer."""
        last = self.log.last
        return (request.last_term, request.last) >= (self.log.term(last), last)

    def may_vote(self, candidate: int, request: RequestVote) -> bool:
        """Return True for the first candidate of a term, if its log has all of this."""
        free = request.pre or self.voted_for in (None, candidate)
        return request.term == self.term and free and self.is_up_to_date(request)

    def on_request_vote(self, sender: int, request: RequestVote) -> Iterator[Effect]:
        """Grant or refuse a vote."""
        granted = self.may_vote(sender, request)
        if granted and not request.pre:
            self.voted_for = sender
            yield from self.persist(Save("vote", (self.term, sender)))
            yield from self.reset_timer()
        vote = Vote(self.term, granted, request.pre)
        yield from self.when_durable(Send(sender, vote))

    def is_current(self, reply: Vote | AppendReply) -> bool:
        """Return True for a reply to a request of this term."""
        return reply.term == self.term

    def on_vote(self, sender: int, vote: Vote) -> Iterator[Effect]:
        """Count a vote."""
        role = PRE_CANDIDATE if vote.pre else CANDIDATE
        if self.is_current(vote) and vote.granted and self.role == role:
            self.votes.add(sender)
            yield from self.count_votes()

    def count_votes(self) -> Iterator[Effect]:
        """Stand for election, or lead, with the votes of a majority.

        Its own is among them: a leader whose term was not durable could, after a power
        loss, lead the same term again, with other entries.
        """
        if self.me in self.votes and self.is_quorum(self.votes):
            yield from self.stand() if self.role == PRE_CANDIDATE else self.lead()

    def is_quorum(self, nodes: set[int]) -> bool:
        """Return True for a majority of the members."""
        return 2 * len(nodes & {*self.members}) > len(self.members)

    def others(self) -> list[int]:
        """Return the other members."""
        return [node for node in self.members if node != self.me]

    def on_timeout_now(self, sender: int, message: TimeoutNow) -> Iterator[Effect]:
        """Stand for election at once, since the leader of this term asks for it."""
        if message.term == self.term and self.me in self.members:
            yield from self.reset_timer()
            yield from self.stand(transfer=True)

    # persistence

    def persist(self, *writes: Effect) -> Iterable[Effect]:
        """Write to disk; a message that depends on it is sent by `when_durable`."""
        self.dirty = True
        return writes

    def when_durable(self, *sends: Send) -> Iterator[Effect]:
        """Send messages once all writes so far are durable.

        One sync is under way at a time: what is written meanwhile shares the next.
        """
        if self.syncing is not None:
            self.unsent += sends
        elif self.dirty:
            self.dirty, self.syncing = False, (self.term, self.log.last, sends)
            yield Sync("raft")
        else:
            yield from sends

    def on_synced(self, token: Hashable) -> Iterator[Effect]:
        """Send what has waited; count one's own vote, or entries, as durable."""
        (term, last, sends), self.syncing = self.syncing, None
        unsent, self.unsent = self.unsent, []
        yield from sends
        yield from self.when_durable(*unsent)
        if term == self.term and self.role == CANDIDATE:
            self.votes.add(self.me)
            yield from self.count_votes()
        elif term == self.term and self.role == LEADER:
            yield from self.on_own_entries(last)
