"""Three-phase commit: no node commits while a participant may not know all votes.

    Prepare ▶ ◀ Voted      all voted yes, and only the coordinator knows
    Adopt ▶ ◀ Ready        "precommitted": every participant knows
    Status ▶               commit

    no coordinator: its backup is the first participant that is alive
    Adopt ▶ ◀ Ready        the others adopt the backup's state
    Status ▶               commit if that is "precommitted", abort if it is "in doubt"

If the backup is in doubt, no node has committed; if it is precommitted, none has
aborted. That needs a reliable failure detector: a node that is silent is dead. In a
partition, each side takes the other for dead.

Source: Skeen, "Nonblocking commit protocols" (1981).
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from distlab.agree.commit.two_phase import (
    ABORTED,
    COMMITTED,
    COORDINATOR,
    Status,
    TwoPhaseCommit,
)
from distlab.network import CancelTimer, Effect, Note, Send, SetTimer, Sync

__all__ = ["PRECOMMITTED", "ThreePhaseCommit"]

PRECOMMITTED = "precommitted"


class Adopt(NamedTuple):
    """Coordinator or backup to participant: a state that it is to log."""

    txn: int
    state: str


class Ready(NamedTuple):
    """Participant to coordinator or backup: that state is on its disk."""

    txn: int


class ThreePhaseCommit(TwoPhaseCommit):
    """Two-phase commit with a phase between the votes and the decision.

    missing: at the coordinator or backup, transaction -> nodes that are not `Ready`.
    recovered: the transactions that this node's log had at its restart.

    Cost: 5 messages a participant; 5 one-way delays and 3 syncs, one after another.
    If a peer dies: the others decide. A node that restarts asks, and does not decide.
    """

    def __init__(self, me: int, peers: Sequence[int]):
        super().__init__(me, peers)
        self.missing: dict[int, set[int]] = {}
        self.recovered: set[int] = set()

    def on_start(self, saved: dict[str, Any]) -> Iterable[Effect] | None:
        """Load the log."""
        self.recovered = set(map(int, saved))
        return super().on_start(saved)

    def on_message(self, sender: int, message: Any) -> Iterable[Effect] | None:
        """Handle the messages of the third phase, and those of the two others."""
        match message:
            case Adopt(txn, state):
                return self.adopt(txn, sender, state)
            case Ready(txn):
                return self.on_ready(txn, sender)
        return super().on_message(sender, message)

    def on_timer(self, name: Hashable) -> Iterable[Effect] | None:
        """Go on without a node that is not ready: it counts as dead."""
        what, txn = name
        return self.go_on(txn) if what == "ready" else super().on_timer(name)

    def on_synced(self, token: Hashable) -> Iterable[Effect] | None:
        """Be ready, now that the adopted state is durable."""
        what, txn, *sender = token
        ready = what == "ready"
        return [Send(*sender, Ready(txn))] if ready else super().on_synced(token)

    def conclude(self, txn: int, outcome: str) -> Iterator[Effect]:
        """Abort at once; before a commit, every living participant must know of it."""
        if outcome == ABORTED:
            yield from super().conclude(txn, outcome)
        elif txn not in self.missing:
            yield CancelTimer(("votes", txn))
            yield from self.spread(txn, PRECOMMITTED, self.votes[txn])

    def recorded_outcome(self, txn: int) -> str | None:
        """Return only what is in the log: a backup may have decided."""
        return self.log[txn].state if txn in self.log else None

    def spread(self, txn: int, state: str, nodes: Iterable[int]) -> Iterator[Effect]:
        """Have nodes adopt a state, and wait for them."""
        self.missing[txn] = set(nodes)
        for node in nodes:
            yield Send(node, Adopt(txn, state))
        yield SetTimer(("ready", txn), self.patience_s)

    def adopt(self, txn: int, sender: int, state: str) -> Iterator[Effect]:
        """Log a state; if decided or without a vote, report that instead."""
        if txn != self.locked_by:
            yield from self.report(txn, sender)
            return
        yield self.write(txn, self.log[txn]._replace(state=state))
        yield self.doubt_timer(txn)
        yield Sync(("ready", txn, sender))

    def on_ready(self, txn: int, sender: int) -> Iterator[Effect]:
        """Go on once no node is missing."""
        if txn in self.missing:
            self.missing[txn].discard(sender)
            if not self.missing[txn]:
                yield from self.go_on(txn)

    def go_on(self, txn: int) -> Iterator[Effect]:
        """Decide by the state that all living participants have now."""
        del self.missing[txn]
        yield CancelTimer(("ready", txn))
        if self.me == COORDINATOR:
            yield from super().conclude(txn, COMMITTED)
        elif txn == self.locked_by:
            committable = self.log[txn].state == PRECOMMITTED
            outcome = COMMITTED if committable else ABORTED
            yield from self.learn(txn, outcome)
            for node in self.log[txn].others:
                yield Send(node, Status(outcome, txn))

    def on_doubt(self, txn: int) -> Iterator[Effect]:
        """Act as the backup of a coordinator that is dead."""
        if txn in self.recovered:
            yield from super().on_doubt(txn)
        else:
            yield Note(f"backup, {self.log[txn].state}")
            yield from self.spread(txn, self.log[txn].state, self.log[txn].others)

    def doubt_timer(self, txn: int) -> SetTimer:
        """Wait the longer, the more participants come first as a backup."""
        before = sum(node < self.me for node in self.log[txn].others)
        return SetTimer(("decision", txn), 2 * (1 + before) * self.patience_s)
