"""`StreamTask`: what every task of a job does: attempts, snapshots, channels.

    start ─ RegisterTask ─▶ coordinator ─ Deploy(attempt, checkpoint) ─▶ restore ─▶ run
    checkpoint: snapshot ─ Sync ─▶ output acknowledged ─▶ Acked ─▶ … ─▶ Complete

When one task has lost its memory, all begin a new **attempt**, each from its snapshot
of the last complete checkpoint, and drop the messages of earlier attempts.

Source: Carbone and others, "Lightweight asynchronous snapshots for distributed
dataflows" (2015); the names are those of Flink.
"""

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple

from distlab.agree.stream.channels import (
    Acked,
    ChannelOut,
    Complete,
    Credit,
    Deploy,
    RegisterTask,
    Running,
    Trigger,
)
from distlab.errors import CorruptLog
from distlab.network import Effect, Node, Note, Refuse, Save, Send, SetTimer, Sync
from distlab.trace import Call

__all__ = ["BROKER", "COORDINATOR", "Snapshot", "StreamTask"]

BROKER, COORDINATOR = 0, 1
_MOST_EARLY = 1000


class Snapshot(NamedTuple):
    """A task's part of a checkpoint: the attempt that took it, and the state."""

    attempt: int
    checkpoint: int
    state: dict


class StreamTask(Node):
    """A task: a source or an operator; a rule is one method.

    job: the `StreamJob` that it is part of.
    attempt: the newest that it knows; durable. running: whether it works in it.
    restored: the checkpoint that it began from. recovering: until the output that
    belongs to that is committed.
    snapshots: its last two, also on its disk, at places 0 and 1.
    pending: the checkpoint that it has taken and not acknowledged, 0 for none; marks:
    node -> the frame up to which the output belongs to it. durable: the last whose
    snapshot is durable; acked: the last acknowledged; committed: the last whose output
    is committed.
    out: node -> the channel to it. early: messages of an attempt that is to begin.
    """

    def __init__(self, me: int, peers: Sequence[int], job: Any):
        super().__init__(me, peers)
        self.job, self.attempt, self.running = job, 0, False
        self.snapshots: dict[int, Snapshot] = {}
        self.out: dict[int, ChannelOut] = {}
        self.early: list[tuple[int, Any]] = []
        self.pending = self.durable = self.acked = self.committed = 0
        self.committing, self.restored, self.recovering, self.marks = 0, 0, False, {}

    # for a subclass

    def begin(self, snapshot: Snapshot | None) -> Iterator[Effect]:
        """Begin the attempt with the state of a snapshot, None for the first."""
        raise NotImplementedError

    def on_item(self, sender: int, message: Any) -> Iterator[Effect]:
        """Handle a message of this attempt."""
        raise NotImplementedError

    def on_checkpoint(self, checkpoint: int) -> Iterator[Effect]:
        """Handle the trigger of a checkpoint."""
        yield from ()

    def commit(self, checkpoint: int) -> Iterator[Effect]:
        """Commit the output that belongs to a complete checkpoint."""
        yield from ()

    def on_room(self) -> Iterator[Effect]:
        """Go on, as a receiver has given credit."""
        yield from ()

    @property
    def position(self) -> int | None:
        """The offset of the last snapshot, of a source."""
        return None

    # attempts

    def on_start(self, saved: dict[str, Any]) -> Iterator[Effect]:
        """Register: what was in memory is lost, so a new attempt must begin."""
        self.attempt = saved.get("attempt", 0)
        for place in (0, 1):
            if f"snapshot {place}" in saved:
                self.snapshots[place] = saved[f"snapshot {place}"]
        yield from self.on_timer("resend")

    def on_message(self, sender: int, message: Any) -> Iterator[Effect]:
        """Handle a message, if it is of this attempt."""
        if type(message) is Deploy:
            yield from self.deploy(*message)
        elif message.attempt > self.attempt or not self.running:
            if message.attempt >= self.attempt and len(self.early) < _MOST_EARLY:
                self.early.append((sender, message))
        elif message.attempt == self.attempt:
            yield from self.on_current(sender, message)

    def on_current(self, sender: int, message: Any) -> Iterator[Effect]:
        """Handle a message of this attempt."""
        match message:
            case Credit(_, number):
                self.out[sender].credit(number)
                yield from self.acknowledge()
                yield from self.on_room()
            case Trigger(_, checkpoint):
                if checkpoint <= self.acked:
                    yield self._acked(checkpoint, False)
                else:
                    yield from self.on_checkpoint(checkpoint)
            case Complete(_, checkpoint):
                if checkpoint > max(self.committing, self.committed):
                    self.committing = checkpoint
                    yield from self.commit(checkpoint)
                    self.marks = self._marks()
                elif checkpoint <= self.committed:
                    yield self._acked(checkpoint, True)
                yield from self.acknowledge()
            case _:
                yield from self.on_item(sender, message)

    def deploy(self, attempt: int, checkpoint: int) -> Iterator[Effect]:
        """Stop, and begin a newer attempt as soon as that is durable."""
        if attempt > self.attempt:
            self.attempt, self.running, self.restored = attempt, False, checkpoint
            yield Save("attempt", attempt)
            yield Sync(("deploy", attempt))
        elif attempt == self.attempt and self.running and not self.recovering:
            yield Send(COORDINATOR, Running(attempt))

    def on_synced(self, token: Hashable) -> Iterator[Effect]:
        """Begin an attempt, or acknowledge a snapshot."""
        what, attempt, *rest = token
        if attempt != self.attempt:
            return
        if what == "deploy":
            yield from self._begin(self.restored)
        elif what == "snapshot":
            (self.durable,) = rest
            yield from self.acknowledge()

    def _begin(self, checkpoint):
        snapshot = self.snapshot_of(checkpoint) if checkpoint else None
        self.pending = self.committing = 0
        self.durable = self.acked = self.committed = checkpoint
        self.running, self.out, self.marks = True, {}, {}
        yield Note(f"attempt {self.attempt} from checkpoint {checkpoint}")
        yield from self.begin(snapshot)
        self.recovering, self.marks = True, self._marks()
        yield from self.acknowledge()
        early, self.early = self.early, []
        for sender, message in early:
            yield from self.on_message(sender, message)

    def snapshot_of(self, checkpoint: int) -> Snapshot:
        """Return the snapshot of a checkpoint.

        Raises: CorruptLog if this node does not have it.
        """
        snapshot = self.snapshots.get(checkpoint % 2)
        if snapshot is None or snapshot.checkpoint != checkpoint:
            raise CorruptLog(
                f"checkpoint {checkpoint} is complete, and node {self.me} has no "
                "snapshot of it: its disk was lost or replaced. The job can only start "
                "anew, from the begin of the log."
            )
        return snapshot

    # checkpoints

    def take_snapshot(self, checkpoint: int, state: dict) -> Iterator[Effect]:
        """Write the state; what was put out before belongs to the checkpoint."""
        self.pending, self.marks = checkpoint, self._marks()
        snapshot = Snapshot(self.attempt, checkpoint, state)
        self.snapshots[checkpoint % 2] = snapshot
        yield Save(f"snapshot {checkpoint % 2}", snapshot)
        yield Sync(("snapshot", self.attempt, checkpoint))

    def may_acknowledge(self) -> bool:
        """Return True if the snapshot is durable, and so is all output before it."""
        return self.durable == self.pending and self.is_flushed()

    def is_flushed(self) -> bool:
        """Return True if the output up to the marks is acknowledged."""
        return all(self.out[to].first >= mark for to, mark in self.marks.items())

    def acknowledge(self) -> Iterator[Effect]:
        """Report recovery, a snapshot, or a commit, to the coordinator once done."""
        if self.recovering and self.is_flushed():
            self.recovering = False
            yield Send(COORDINATOR, Running(self.attempt))
        if self.pending and self.may_acknowledge():
            self.acked, self.pending = self.pending, 0
            yield self._acked(self.acked, False)
        if self.committing and self.is_flushed():
            self.committed, self.committing = self.committing, 0
            yield self._acked(self.committed, True)

    def _marks(self):
        return {to: each.next for to, each in self.out.items() if to == BROKER}

    def _acked(self, checkpoint, committed):
        message = Acked(self.attempt, checkpoint, committed, self.position)
        return Send(COORDINATOR, message)

    # time

    def on_timer(self, name: Hashable) -> Iterator[Effect]:
        """Send again what was lost."""
        if name == "resend":
            yield SetTimer("resend", self.job.resend_s)
            if not self.running:
                yield Send(COORDINATOR, RegisterTask(self.attempt))
            for channel in self.out.values():
                yield from channel.resend()

    def on_client(self, request: int, call: Call) -> Iterator[Effect]:
        """Refuse: clients talk to the broker and the coordinator."""
        yield Refuse(request, "a task serves no clients", COORDINATOR)
