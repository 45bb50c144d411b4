"""`CheckpointCoordinator`: begins attempts, and makes snapshots of tasks a checkpoint.

    Trigger ─▶ all tasks ─ Acked ─▶ all? ─ Save, Sync ─▶ complete ─ Complete ─▶ commit

One checkpoint is under way at a time. It is complete as soon as the coordinator's disk
says so; then what belongs to it is committed, if need be by the next attempt.
"""

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

from distlab.agree.stream.channels import (
    Acked,
    Complete,
    Deploy,
    RegisterTask,
    Running,
    Trigger,
)
from distlab.network import (
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

__all__ = ["CheckpointCoordinator"]


class CheckpointCoordinator(Node):
    """The coordinator of a job.

    Calls: "wait" until a checkpoint is complete and committed that has read `value`,
    {partition: offset}; its reply, as that of "status", is (checkpoint, offsets).

    attempt, complete, offsets: durable; the last two of the last complete checkpoint.
    started: whether the attempt's number is durable.
    phase: "deploy", "idle", "snapshot", "decide" or "commit". missing: the tasks whose
    answer it waits for in this phase. taken: source -> offset in this checkpoint.
    """

    def __init__(self, me: int, peers: Sequence[int], job: Any):
        super().__init__(me, peers)
        self.job, self.phase, self.missing = job, "deploy", set()
        self.attempt, self.complete, self.started = 0, 0, False
        self.offsets, self.taken, self.waits = {}, {}, {}

    def is_complete(self) -> bool:
        """Return True if every task's snapshot is durable."""
        return not self.missing

    # attempts

    def on_start(self, saved: dict[str, Any]) -> Iterator[Effect]:
        """Begin the next attempt."""
        self.attempt = saved.get("attempt", 0)
        self.complete, self.offsets = saved.get("complete", (0, {}))
        yield SetTimer("resend", self.job.resend_s)
        yield from self.begin_attempt()

    def begin_attempt(self) -> Iterator[Effect]:
        """Begin an attempt, as soon as its number is durable."""
        self.attempt += 1
        self.started = False
        self.phase, self.missing = "deploy", {*self.job.tasks}
        yield Note(f"attempt {self.attempt}, checkpoint {self.complete}")
        yield Save("attempt", self.attempt)
        yield Sync(("attempt", self.attempt))

    def on_register(self, sender: int, attempt: int) -> Iterator[Effect]:
        """Begin a new attempt, as a task has lost its memory of this one."""
        if attempt >= self.attempt or self.phase != "deploy":
            yield from self.begin_attempt()
        elif self.started:
            yield Send(sender, self.request())

    # checkpoints

    def request(self) -> Any:
        """Return the message of this phase to a task."""
        at = self.complete + (self.phase == "snapshot")
        kind = {"deploy": Deploy, "snapshot": Trigger, "commit": Complete}[self.phase]
        return kind(self.attempt, at)

    def request_all(self, phase: str, tasks: Sequence[int] = ()) -> Iterator[Effect]:
        """Begin a phase: send tasks its message, and wait for all tasks."""
        self.phase, self.missing = phase, {*self.job.tasks}
        for task in tasks or self.job.tasks:
            yield Send(task, self.request())

    def on_timer(self, name: Hashable) -> Iterator[Effect]:
        """Begin a checkpoint, or ask again."""
        if name == "checkpoint":
            if self.phase == "idle":
                yield from self.request_all("snapshot", self.job.sources)
        else:
            yield SetTimer("resend", self.job.resend_s)
            if self.phase in ("deploy", "snapshot", "commit") and self.started:
                for task in sorted(self.missing):
                    yield Send(task, self.request())

    def on_message(self, sender: int, message: Any) -> Iterator[Effect]:
        """Handle a task's message."""
        if type(message) is RegisterTask:
            yield from self.on_register(sender, message.attempt)
        elif message.attempt != self.attempt:
            return
        elif type(message) is Running and self.phase == "deploy":
            self.missing.discard(sender)
            if not self.missing:
                yield from self.on_committed()
        elif type(message) is Acked and message.committed:
            if self.phase == "commit" and message.checkpoint == self.complete:
                self.missing.discard(sender)
                if not self.missing:
                    yield from self.on_committed()
        elif type(message) is Acked and self.phase == "snapshot":
            yield from self.on_acked(sender, message)

    def on_acked(self, sender: int, message: Acked) -> Iterator[Effect]:
        """Note a durable snapshot; after the last one, write that all are there."""
        if message.checkpoint != self.complete + 1:
            return
        self.missing.discard(sender)
        if message.offset is not None:
            self.taken[self.job.sources.index(sender)] = message.offset
        if self.is_complete():
            self.phase = "decide"
            self.complete, self.offsets = message.checkpoint, dict(self.taken)
            yield Save("complete", (self.complete, self.offsets))
            yield Sync(("complete", self.attempt))

    def on_synced(self, token: Hashable) -> Iterator[Effect]:
        """Deploy the attempt, or have the complete checkpoint committed."""
        what, attempt = token
        if attempt != self.attempt:
            return
        if what == "attempt":
            self.started = True
            yield from self.request_all("deploy")
        elif self.phase == "decide":
            yield Note(f"checkpoint {self.complete} complete")
            yield from self.request_all("commit")

    def on_committed(self) -> Iterator[Effect]:
        """Go on to the next checkpoint, and answer the clients that wait for this."""
        self.phase = "idle"
        yield SetTimer("checkpoint", self.job.every_s)
        for request, offsets in list(self.waits.items()):
            if all(self.offsets.get(p, 0) >= end for p, end in offsets.items()):
                del self.waits[request]
                yield Reply(request, (self.complete, dict(self.offsets)))

    def on_client(self, request: int, call: Call) -> Iterator[Effect]:
        """Answer, or let a client wait for a checkpoint."""
        if call.op == "status":
            yield Reply(request, (self.complete, dict(self.offsets)))
        elif call.op == "wait":
            self.waits[request] = call.value
        else:
            yield Refuse(request, "the coordinator knows wait and status", 0)
