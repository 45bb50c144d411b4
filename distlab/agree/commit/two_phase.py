"""Two-phase commit: accounts on several nodes change together, or none of them does.

    client ─ transfer ▶ coordinator, node 0
                        ─ Prepare ▶ participants: log it, which locks the account; vote
                        ◀─ Voted ──
                        all voted yes: log "committed"; else nothing (presumed abort)
                        ─ Status ▶ participants: log the outcome, unlock
    in doubt too long:  participant ─ Inquiry ▶ the coordinator and the others

Source: Gray, "Notes on data base operating systems" (1978); presumed abort: Mohan,
Lindsay and Obermarck, "Transaction management in the R* distributed database management
system" (1986), here without the acknowledgements after which a commit is forgotten.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from distlab.network import (
    CancelTimer,
    Effect,
    Node,
    Note,
    Refuse,
    Reply,
    Save,
    Send,
    SetTimer,
    Sync,
)
from distlab.trace import Call

__all__ = ["ABORTED", "COMMITTED", "COORDINATOR", "IN_DOUBT", "TwoPhaseCommit"]

COORDINATOR = 0
IN_DOUBT, COMMITTED, ABORTED = "in doubt", "committed", "aborted"


class Prepare(NamedTuple):
    """Coordinator to participant: the change of its account; the other participants."""

    txn: int
    change: int
    others: tuple[int, ...]


class Voted(NamedTuple):
    """Participant to coordinator: its vote. A yes is on its disk, a no is final."""

    txn: int
    yes: bool


class Inquiry(NamedTuple):
    """Participant in doubt to all nodes of the transaction: a request for its state."""

    txn: int


class Status(NamedTuple):
    """A transaction's state at its sender: the decision, or the reply to an inquiry."""

    state: str
    txn: int


class LogRecord(NamedTuple):
    """The state of a transaction in one node's log; a decided one never changes."""

    state: str
    change: int = 0
    others: tuple[int, ...] = ()


class TwoPhaseCommit(Node):
    """Node 0 is the coordinator, each other node a participant with one account.

    Calls: "transfer" at node 0, of a dict from node to change with the sum 0; "read" at
    a participant. A transaction has its request's number: clients must not retry.

    log: transaction -> its record, as on the disk; balance and lock follow from it.
    votes: at the coordinator, transaction -> participant -> vote, None if missing.
    reports: at a participant, transaction -> node -> the state it reported.
    patience_s: time-out for votes; twice that for the decision.

    Invariant: a record is durable before a message that depends on it is sent.
    Cost: 3 messages a participant; 3 one-way delays and 2 syncs, one after another.
    If a peer dies: without its vote, abort; without the coordinator's decision,
    participants that are all in doubt are blocked, and keep their locks.
    """

    opening, patience_s = 100, 0.05

    def __init__(self, me: int, peers: Sequence[int]):
        super().__init__(me, peers)
        self.log: dict[int, LogRecord] = {}
        self.votes: dict[int, dict[int, bool | None]] = {}
        self.reports: dict[int, dict[int, str]] = {}

    @property
    def balance(self) -> int:
        """The account's committed balance."""
        changes = (each.change for each in self.log.values() if each.state == COMMITTED)
        return self.opening + sum(changes)

    @property
    def locked_by(self) -> int | None:
        """The undecided transaction, which holds the account's lock."""
        decided = COMMITTED, ABORTED
        return next(
            (t for t, each in self.log.items() if each.state not in decided), None
        )

    @property
    def blocked(self) -> bool:
        """True if all other participants have reported, and none knows the outcome."""
        reports = self.reports.get(self.locked_by)
        return reports is not None and {*self.log[self.locked_by].others} <= {*reports}

    def on_start(self, saved: dict[str, Any]) -> Iterable[Effect] | None:
        """Load the log; a participant in doubt still holds its lock, and asks."""
        self.log = {int(txn): record for txn, record in saved.items()}
        return None if self.locked_by is None else self.on_doubt(self.locked_by)

    def on_client(self, request: int, call: Call) -> Iterator[Effect]:
        """Begin a transfer, or read an account that is not locked."""
        if call.op == "transfer" and self.me == COORDINATOR:
            if self.is_transfer(call.value):
                yield from self.begin(request, call.value)
            else:
                yield Refuse(request, f"no transfer between nodes {self.peers}, sum 0")
        elif call.op == "read" and self.me != COORDINATOR:
            locked, why = self.locked_by, f"locked by transaction {self.locked_by}"
            yield Refuse(request, why) if locked else Reply(request, self.balance)
        else:
            yield Refuse(request, "node 0 knows transfer, the others know read")

    def is_transfer(self, changes: Any) -> bool:
        """Return True for a dict from participants to whole numbers with the sum 0."""
        if not isinstance(changes, dict) or not {*changes} <= {*self.peers}:
            return False
        whole = all(type(change) is int for change in changes.values())
        return bool(changes) and whole and sum(changes.values()) == 0

    def on_message(self, sender: int, message: Any) -> Iterable[Effect] | None:
        """Handle a message in one of the two roles."""
        match message:
            case Prepare(txn, change, others):
                return self.prepare(txn, LogRecord(IN_DOUBT, change, others))
            case Voted(txn, yes):
                return self.count(txn, sender, yes)
            case Inquiry(txn):
                return self.report(txn, sender)
            case Status(state, txn):
                return self.hear(txn, sender, state)

    def on_timer(self, name: Hashable) -> Iterable[Effect] | None:
        """Handle a missing vote as the coordinator, or a missing decision."""
        what, txn = name
        return self.on_missing_vote(txn) if what == "votes" else self.on_doubt(txn)

    def on_synced(self, token: Hashable) -> Iterable[Effect] | None:
        """Send what depends on a record, now that the record is durable."""
        match token:
            case ("vote", txn):
                return [Send(COORDINATOR, Voted(txn, self.log[txn].state != ABORTED))]
            case ("decision", txn):
                return self.announce(txn, COMMITTED, self.log[txn].others)
            case ("status", sender, status):
                return [Send(sender, status)]

    def begin(self, txn: int, changes: dict[int, int]) -> Iterator[Effect]:
        """Ask every participant to prepare."""
        self.votes[txn] = dict.fromkeys(changes)
        yield SetTimer(("votes", txn), self.patience_s)
        for node, change in changes.items():
            others = tuple(other for other in changes if other != node)
            yield Send(node, Prepare(txn, change, others))

    def prepare(self, txn: int, record: LogRecord) -> Iterator[Effect]:
        """Log the vote, and send it once that is durable; a yes locks the account."""
        if txn not in self.log:
            yes = self.vote(record.change)
            yield self.write(txn, record if yes else record._replace(state=ABORTED))
            if yes:
                yield Note(f"in doubt, locked by {txn}")
                yield self.doubt_timer(txn)
        yield Sync(("vote", txn))

    def vote(self, change: int) -> bool:
        """Vote yes if the account is not locked, and will not be overdrawn."""
        return self.locked_by is None and self.balance + change >= 0

    def count(self, txn: int, sender: int, yes: bool) -> Iterator[Effect]:
        """Count a vote, unless the decision is made."""
        if txn in self.votes:
            self.votes[txn][sender] = yes
            if outcome := self.decision([*self.votes[txn].values()]):
                yield from self.conclude(txn, outcome)

    def decision(self, votes: list[bool | None]) -> str | None:
        """Commit with every yes, abort with one no; None: wait for the missing ones."""
        return ABORTED if False in votes else COMMITTED if all(votes) else None

    def on_missing_vote(self, txn: int) -> Iterator[Effect]:
        """Abort, as a participant without a vote may vote no, or never."""
        yield from self.conclude(txn, ABORTED)

    def conclude(self, txn: int, outcome: str) -> Iterator[Effect]:
        """Log a commit, and send it once that is durable; an abort needs no record."""
        participants = tuple(self.votes.pop(txn))
        yield CancelTimer(("votes", txn))
        if outcome == COMMITTED:
            yield self.write(txn, LogRecord(outcome, others=participants))
            yield Sync(("decision", txn))
        else:
            yield from self.announce(txn, outcome, participants)

    def announce(
        self, txn: int, outcome: str, participants: tuple[int, ...]
    ) -> Iterator[Effect]:
        """Send the decision to the participants, and reply to the client."""
        for node in participants:
            yield Send(node, Status(outcome, txn))
        yield Reply(txn, outcome) if outcome == COMMITTED else Refuse(txn, outcome)

    def recorded_outcome(self, txn: int) -> str | None:
        """Return a transaction's outcome, None while votes are missing.

        Presumed abort: without a record none was told to commit, and none will be; that
        holds after a restart, too.
        """
        if txn in self.log:
            return self.log[txn].state
        return None if txn in self.votes else ABORTED

    def on_doubt(self, txn: int) -> Iterator[Effect]:
        """Ask all others: a yes cannot be taken back, as it may have been counted."""
        self.reports.setdefault(txn, {})
        for node in (COORDINATOR, *self.log[txn].others):
            yield Send(node, Inquiry(txn))
        yield self.doubt_timer(txn)

    def doubt_timer(self, txn: int) -> SetTimer:
        """Return the timer that ends the wait for the decision."""
        return SetTimer(("decision", txn), 2 * self.patience_s)

    def report(self, txn: int, sender: int) -> Iterator[Effect]:
        """Answer an inquiry; a participant that has not voted first logs a no."""
        if self.me != COORDINATOR and txn not in self.log:
            yield self.write(txn, LogRecord(ABORTED))  # a late Prepare gets this no
        decides = self.me == COORDINATOR
        state = self.recorded_outcome(txn) if decides else self.log[txn].state
        if state is not None:  # as it is now: the sync covers no later write
            yield Sync(("status", sender, Status(state, txn)))

    def hear(self, txn: int, sender: int, state: str) -> Iterator[Effect]:
        """Decide by the reports, or stay in doubt, with the lock."""
        if txn == self.locked_by:
            reports, was_blocked = self.reports.setdefault(txn, {}), self.blocked
            reports[sender] = state
            if outcome := self.termination([*reports.values()]):
                yield from self.learn(txn, outcome)
            elif self.blocked and not was_blocked:
                yield Note(f"blocked by {txn}")

    def termination(self, states: list[str]) -> str | None:
        """Follow any node that knows the outcome; None if all are in doubt, too."""
        return next((each for each in states if each in (COMMITTED, ABORTED)), None)

    def learn(self, txn: int, outcome: str) -> Iterator[Effect]:
        """Log the outcome, which unlocks the account; if lost, it asks again."""
        yield self.write(txn, self.log[txn]._replace(state=outcome))
        yield CancelTimer(("decision", txn))
        yield Note(f"{txn} {outcome}")

    def write(self, txn: int, record: LogRecord) -> Effect:
        """Set a transaction's record in the log, in memory and on the disk."""
        self.log[txn] = record
        return Save(str(txn), record)
