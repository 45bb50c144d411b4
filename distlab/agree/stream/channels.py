"""Messages between the nodes of a job, and the channels that carry records in order.

    ChannelOut ── ChannelFrame 0, 1, 2 … ──▶ ChannelIn ─▶ queue ─▶ processed
               ◀── Credit: all below 2 ──

The network may drop, duplicate and reorder. A channel numbers its frames, sends again
what has no credit, and has its receiver sort them: that is exactly-once *delivery*, as
of TCP, until one of the ends restarts. Its frames without credit are limited, so a
receiver that is slow stops its sender: **back-pressure**.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from distlab.network import Effect, Send

__all__ = ["Acked", "Barrier", "ChannelIn", "ChannelOut", "Complete", "Credit"]
__all__ += ["ChannelFrame", "Deploy", "EndTransaction", "Fetch", "Fetched", "Idle"]
__all__ += ["OpenProducer", "Produce", "RegisterTask", "Rows", "Running", "Trigger"]


class ChannelFrame(NamedTuple):
    """An item on a channel: its number in this attempt of the job."""

    attempt: int
    number: int
    item: Any


class Credit(NamedTuple):
    """Receiver to sender: all frames below this number are processed."""

    attempt: int
    number: int


class Rows(NamedTuple):
    """Counts by key, of one batch of the log, in columns; and the source's watermark.

    partition, offset: of the batch. keys: words, or of a windowed job (word, start of
    the window). values: how often each occurs.
    """

    partition: int
    offset: int
    keys: tuple
    values: tuple
    watermark: float


class Barrier(NamedTuple):
    """Between what belongs to a checkpoint and what does not."""

    checkpoint: int


class Idle(NamedTuple):
    """The source's partition is silent: watermarks do not wait for it."""


class OpenProducer(NamedTuple):
    """First frame of a producer's epoch: older epochs are fenced.

    commit: (epoch, number) of the transaction to commit; the others are aborted.
    """

    commit: tuple | None


class Produce(NamedTuple):
    """Records for a partition, as bytes."""

    partition: int
    body: bytes
    count: int
    txn: Any = None
    write_id: Any = None


class EndTransaction(NamedTuple):
    """Commit a transaction, of all partitions, and consumer offsets with it."""

    txn: Any
    offsets: dict
    commit: bool = True


class Fetch(NamedTuple):
    """Source to broker: batches from this offset on, once there are any."""

    attempt: int
    partition: int
    offset: int


class Fetched(NamedTuple):
    """Broker to source: batches from the offset that it wants."""

    attempt: int
    offset: int
    batches: tuple


class RegisterTask(NamedTuple):
    """Task to coordinator: it has started, and has lost attempt `attempt`."""

    attempt: int


class Deploy(NamedTuple):
    """Coordinator to task: begin this attempt from a checkpoint, 0 for none."""

    attempt: int
    checkpoint: int


class Running(NamedTuple):
    """Task to coordinator: it has begun."""

    attempt: int


class Trigger(NamedTuple):
    """Coordinator to task: take this checkpoint; a source sends barriers."""

    attempt: int
    checkpoint: int


class Complete(NamedTuple):
    """Coordinator to task: the checkpoint is complete, commit what belongs to it."""

    attempt: int
    checkpoint: int


class Acked(NamedTuple):
    """Task to coordinator: its snapshot is durable, or its output is committed.

    offset: of a source, from which it would read on; None of another task.
    """

    attempt: int
    checkpoint: int
    committed: bool
    offset: int | None


class ChannelOut:
    """The sender's end. waiting: frames without credit. next: the next one's number.

    seen: the number that `next` had at the last time-out: what is older and still
        waits was lost.
    """

    def __init__(self, to: int, attempt: int, capacity: int):
        self.to, self.attempt, self.capacity = to, attempt, capacity
        self.next, self.seen, self.waiting = 0, 0, []

    @property
    def has_room(self) -> bool:
        """True if the receiver has credit left for this sender."""
        return len(self.waiting) < self.capacity

    @property
    def first(self) -> int:
        """The number of the first frame without credit."""
        return self.next - len(self.waiting)

    def put(self, item: Any) -> Effect:
        """Return the effect that sends an item; barriers need no room."""
        frame = ChannelFrame(self.attempt, self.next, item)
        self.waiting.append(frame)
        self.next += 1
        return Send(self.to, frame)

    def credit(self, number: int) -> None:
        """Forget the frames below a number."""
        del self.waiting[: max(0, number - self.first)]

    def resend(self) -> Iterator[Effect]:
        """Send again what has waited for a whole time-out."""
        for frame in self.waiting[: max(0, self.seen - self.first)]:
            yield Send(self.to, frame)
        self.seen = self.next


class ChannelIn:
    """The receiver's end. queue: items in order. done: how many are processed.

    early: number -> item that has overtaken others.
    """

    def __init__(self):
        self.done, self.queue, self.early = 0, [], {}

    def accept(self, number: int, item: Any) -> None:
        """Put an item into its place, unless it is a duplicate."""
        if number >= self.done + len(self.queue):
            self.early[number] = item
        while (at := self.done + len(self.queue)) in self.early:
            self.queue.append(self.early.pop(at))

    def take(self) -> Any:
        """Return the next item, which counts as processed."""
        self.done += 1
        return self.queue.pop(0)
