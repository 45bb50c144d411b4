"""`KeyedCount`: an operator with state by key, barriers, watermarks and a sink.

    source 2 ─ queue ─▶ ┐ is_blocked?                    ┌ pre-commit, commit ─▶ broker
    source 3 ─ queue ─▶ ┴─ process ─▶ state ─▶ windows ──┘
               Barrier: wait for that of every input, then snapshot: **alignment**

An operator that waits so has in its state exactly what came before the barriers, so a
snapshot of all tasks is one of the log up to the sources' offsets.
"""

import math
import zlib
from collections.abc import Hashable, Iterator
from typing import Any

from distlab.agree.stream.channels import (
    Barrier,
    ChannelFrame,
    ChannelIn,
    ChannelOut,
    Credit,
    EndTransaction,
    Idle,
    OpenProducer,
    Produce,
    Rows,
)
from distlab.agree.stream.log import encode
from distlab.agree.stream.tasks import BROKER, Snapshot, StreamTask
from distlab.network import Effect, Note, Send, SetTimer

__all__ = ["KeyedCount", "Sink"]


class Sink(StreamTask):
    """A task that puts out records to a partition of its own; each rule is a method.

    Plain: a write is visible at once. Idempotent: so it is, with an id that is the same
    when it is written again. Transactional: writes between two barriers are one
    transaction, committed when the checkpoint of the second is complete.
    """

    txn = 0  # number of the open transaction: of the checkpoint that will end it

    def write_id(self, rows: list, origin: tuple) -> Any:
        """Return the id of an idempotent write: what it was made from, on each run."""
        return origin

    def commits_at_barrier(self) -> bool:
        """Return True if output is committed before the checkpoint is complete."""
        return False

    def kept_transaction(self, snapshot: Snapshot | None) -> tuple[int, int] | None:
        """Return the (attempt, checkpoint) to commit on a restart, or None."""
        return snapshot[:2] if snapshot else None

    def open_sink(self, snapshot: Snapshot | None) -> Iterator[Effect]:
        """Begin an epoch: commit what is of the snapshot, abort what came later."""
        channel = ChannelOut(BROKER, self.attempt, self.job.capacity)
        self.out[BROKER] = channel
        self.txn = snapshot.checkpoint + 1 if snapshot else 1
        yield channel.put(OpenProducer(self.kept_transaction(snapshot)))

    def write(self, rows: list, origin: tuple) -> Iterator[Effect]:
        """Put out records that were made from `origin`."""
        if rows:
            sink, partition = self.job.sink, self.job.output_of(self.me)
            txn = self.txn if sink == "transactional" else None
            write_id = self.write_id(rows, origin) if sink == "idempotent" else None
            item = Produce(partition, encode(rows), len(rows), txn, write_id)
            yield self.out[BROKER].put(item)

    def pre_commit(self, checkpoint: int) -> Iterator[Effect]:
        """End the transaction of a checkpoint; it is durable, and not committed."""
        if self.commits_at_barrier():
            yield from self.commit(checkpoint)
        self.txn = checkpoint + 1

    def commit(self, checkpoint: int) -> Iterator[Effect]:
        """Commit the transaction of a checkpoint."""
        if self.job.sink == "transactional":
            yield self.out[BROKER].put(EndTransaction(checkpoint, {}))


class KeyedCount(Sink):
    """An operator that counts by key, in windows of event time if the job has them.

    inputs: source -> its channel. barriers: inputs whose barrier has come, of the
    checkpoint that is being aligned. blocked_s: input -> how long it was blocked.
    counts: key -> count; of a windowed job the key is (word, start), until the window
    is closed. late: the same, of what came after that (the side output). fired: the
    keys whose present count was put out.
    input_marks: input -> its watermark; idle: inputs that are idle; idles: how often
    one became so. watermark: the operator's own; it never falls.
    queued: (clock, items that wait), at each change, if the job has `work_s`. busy:
    until that time is over.
    """

    def __init__(self, me, peers, job):
        super().__init__(me, peers, job)
        self.inputs, self.barriers, self.busy = {}, set(), False
        self.since_s, self.blocked_s, self.queued, self.idles = {}, {}, [], 0
        self._restore({})

    def _restore(self, state):
        self.counts = dict(state.get("counts", {}))
        self.late = dict(state.get("late", {}))
        self.fired = dict(state.get("fired", {}))
        self.watermark = state.get("watermark", -math.inf)
        self.input_marks = {source: -math.inf for source in self.job.sources}
        self.input_marks.update(state.get("input_marks", {}))
        self.idle = set(state.get("idle", ()))

    # rules

    def is_blocked(self, source: int) -> bool:
        """Return True if an input has to wait for the barriers of the others."""
        return self.job.guarantee == "effectively once" and source in self.barriers

    def is_aligned(self) -> bool:
        """Return True if the barrier of every input has come."""
        return self.barriers == {*self.job.sources}

    def combined_watermark(self) -> float:
        """Return the minimum of the inputs' watermarks, without the idle ones."""
        marks = [m for source, m in self.input_marks.items() if source not in self.idle]
        return min(marks, default=self.watermark)

    def is_late(self, start: float) -> bool:
        """Return True if the window that starts then is closed."""
        return start + self.job.window_s + self.job.lateness_s <= self.watermark

    def is_due(self, start: float) -> bool:
        """Return True if the watermark has passed the end of the window."""
        return start + self.job.window_s <= self.watermark

    # the attempt

    def begin(self, snapshot: Snapshot | None) -> Iterator[Effect]:
        """Begin with the state of a snapshot, and with empty channels."""
        self._restore(snapshot.state if snapshot else {})
        self.inputs = {source: ChannelIn() for source in self.job.sources}
        self.barriers, self.since_s, self.busy = set(), {}, False
        yield from self.open_sink(snapshot)

    def on_item(self, sender: int, message: Any) -> Iterator[Effect]:
        """Take a frame of a source, and process what can be."""
        if type(message) is ChannelFrame and sender in self.inputs:
            channel = self.inputs[sender]
            channel.accept(message.number, message.item)
            if message.number < channel.done:
                yield Send(sender, Credit(self.attempt, channel.done))
            yield from self.on_room()

    def on_room(self) -> Iterator[Effect]:
        """Process the queues, except of blocked inputs, while the sink has room."""
        again = self.running
        while again:
            again = False
            for source, channel in self.inputs.items():
                if channel.queue and self.may_process(source):
                    yield from self.process(source, channel.take())
                    yield Send(source, Credit(self.attempt, channel.done))
                    again = True
        self.note_queues()

    def may_process(self, source: int) -> bool:
        """Return True if the next item of an input can be processed now."""
        return (
            not self.busy and self.out[BROKER].has_room and not self.is_blocked(source)
        )

    def note_queues(self) -> None:
        """Record how many items wait, of a job whose operators take time."""
        length = sum(len(channel.queue) for channel in self.inputs.values())
        if self.job.work_s and (not self.queued or self.queued[-1][1] != length):
            self.queued.append((self.clock_s, length))

    def process(self, source: int, item: Any) -> Iterator[Effect]:
        """Process one item of an input."""
        if type(item) is Barrier:
            yield from self.on_barrier(source, item.checkpoint)
        elif type(item) is Idle:
            self.idle.add(source)
            self.idles += 1
            yield from self.on_watermark()
        else:
            yield from self.count(item)
            self.idle.discard(source)
            if self.job.window_s:
                self.input_marks[source] = item.watermark
                yield from self.on_watermark()
            if self.job.work_s:
                self.busy = True
                yield SetTimer("work", self.job.work_s)

    def on_timer(self, name: Hashable) -> Iterator[Effect]:
        """Go on after the time that a batch takes."""
        if name == "work":
            self.busy = False
            yield from self.on_room()
        else:
            yield from super().on_timer(name)

    # keyed state and windows

    def count(self, rows: Rows) -> Iterator[Effect]:
        """Add to the counts; without windows, put the additions out."""
        pairs, counts = list(zip(rows.keys, rows.values, strict=True)), self.counts
        if not self.job.window_s:
            for key, value in pairs:
                counts[key] = counts.get(key, 0) + value
            yield from self.write(pairs, (rows.partition, rows.offset))
            return
        for key, value in pairs:
            table = self.late if self.is_late(key[1]) else counts
            table[key] = table.get(key, 0) + value
            self.fired.pop(key, None)

    def on_watermark(self) -> Iterator[Effect]:
        """Put out the windows that the watermark has passed; forget closed ones."""
        self.watermark = max(self.watermark, self.combined_watermark())
        due = {key for key in self.counts if self.is_due(key[1])}
        for start in sorted({key[1] for key in due if key not in self.fired}):
            keys = sorted(k for k in due if k[1] == start and k not in self.fired)
            rows = [[*key, self.counts[key]] for key in keys]
            self.fired.update(dict.fromkeys(keys, True))
            origin = "window", start, zlib.crc32(encode(rows))
            yield from self.write(rows, origin)
        for key in [key for key in due if self.is_late(key[1])]:
            del self.counts[key], self.fired[key]

    # barriers

    def on_barrier(self, source: int, checkpoint: int) -> Iterator[Effect]:
        """Block the input until the barrier has come from all; then take a snapshot."""
        self.barriers.add(source)
        self.since_s[source] = self.clock_s
        if not self.is_aligned():
            return
        for each, since_s in self.since_s.items():  # a clock may jump back
            waited_s = max(0.0, self.clock_s - since_s)
            self.blocked_s[each] = self.blocked_s.get(each, 0.0) + waited_s
        self.barriers, self.since_s = set(), {}
        yield Note(f"checkpoint {checkpoint} aligned")
        yield from self.pre_commit(checkpoint)
        yield from self.take_snapshot(checkpoint, self.state())

    def state(self) -> dict:
        """Return a copy of the state, for a snapshot."""
        return {
            "counts": dict(self.counts),
            "late": dict(self.late),
            "fired": dict(self.fired),
            "watermark": self.watermark,
            "input_marks": dict(self.input_marks),
            "idle": sorted(self.idle),
        }
