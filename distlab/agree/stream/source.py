"""`SourceTask`: reads one partition, splits records into keys, and partitions them.

    broker ─ Fetched ─▶ flat_map ─▶ window ─▶ key_by ─ Rows, Barrier, Idle ─▶ operators

Its state is an offset and a watermark. The **watermark** is a time in the events' own
clock: the source claims that no event before it is still to come. It cannot know that;
it takes the latest event and allows for some disorder.
"""

import math
import zlib
from collections import Counter
from collections.abc import Hashable, Iterator
from itertools import chain
from typing import Any

from distlab.agree.stream.channels import (
    Barrier,
    ChannelOut,
    Fetch,
    Fetched,
    Idle,
    Rows,
)
from distlab.agree.stream.log import LogBatch, decode
from distlab.agree.stream.tasks import BROKER, Snapshot, StreamTask
from distlab.network import CancelTimer, Effect, Save, Send, SetTimer, Sync

__all__ = ["LATEST_S", "SourceTask", "is_event", "is_event_time"]

LATEST_S = 253_402_300_800  # the year 10000, in seconds since 1970


def is_event_time(time: Any) -> bool:
    """Return True for a number of seconds from 0 to the year 10000."""
    real = isinstance(time, int | float) and not isinstance(time, bool)
    return real and 0 <= time < LATEST_S  # NaN is not


def is_event(record: Any) -> bool:
    """Return True for a list of an event time and a text."""
    pair = isinstance(record, list) and len(record) == 2
    return pair and is_event_time(record[0]) and isinstance(record[1], str)


class SourceTask(StreamTask):
    """The source of partition `partition`; a rule is replaced by its method.

    offset: of the next record to pass on. watermark: -inf before the first event.
    ready: batches that were fetched, and wait for credit. held: those whose offset is
    not durable, of a job that delivers at most once. silent: True after a time-out
    without a record. malformed: the number of records that are no text, or whose event
    time is out of all bounds; they go no further.
    Invariant: all records below `offset` are in the channels, before the next barrier.
    """

    def __init__(self, me, peers, job):
        super().__init__(me, peers, job)
        self.partition = job.sources.index(me)
        self.offset, self.watermark, self.malformed = 0, -math.inf, 0
        self.ready, self.held, self.fetching = [], (), False
        self.silent, self.barrier = False, 0

    # rules

    def first_offset(self, snapshot: Snapshot | None, saved: int) -> int:
        """Return the offset to read from in a new attempt.

        saved: the one that was written before processing, if `saves_offset_first`.
        """
        offset = snapshot.state["offset"] if snapshot else 0
        return max(saved, offset) if self.saves_offset_first() else offset

    def saves_offset_first(self) -> bool:
        """Return True if the offset is written before the records are processed."""
        return self.job.guarantee == "at most once"

    def worker_of(self, key: str) -> int:
        """Return the number of the operator that has a key's state (key_by)."""
        return zlib.crc32(key.encode()) % self.job.workers

    def window_of(self, time: float) -> float:
        """Return the start of the tumbling window that a time is in."""
        return time // self.job.window_s * self.job.window_s

    def next_watermark(self, latest: float) -> float:
        """Return the watermark after an event of time `latest`; it never falls."""
        return max(self.watermark, latest - self.job.disorder_s)

    def is_idle(self) -> bool:
        """Return True if the operators should not wait for this partition."""
        return self.silent

    # the attempt

    def on_start(self, saved: dict[str, Any]) -> Iterator[Effect]:
        """Load the offset that was written before processing, if the job does so."""
        self.saved_offset = saved.get("offset", 0)
        yield from super().on_start(saved)

    def begin(self, snapshot: Snapshot | None) -> Iterator[Effect]:
        """Read on from the snapshot's offset."""
        state = snapshot.state if snapshot else {}
        self.offset = self.first_offset(snapshot, self.saved_offset)
        self.watermark = state.get("watermark", -math.inf)
        self.malformed = state.get("malformed", 0)
        self.ready, self.held, self.silent, self.barrier = [], (), False, 0
        for node in self.job.operators:
            self.out[node] = ChannelOut(node, self.attempt, self.job.capacity)
        yield from self.fetch()

    @property
    def position(self) -> int:
        """The offset of the last snapshot."""
        snapshot = self.snapshots.get(self.acked % 2)
        return snapshot.state["offset"] if snapshot else 0

    def fetch(self) -> Iterator[Effect]:
        """Request the next batches."""
        self.fetching = True
        yield Send(BROKER, Fetch(self.attempt, self.partition, self.offset))
        if self.job.window_s:
            yield SetTimer("idle", self.job.idle_s)

    def on_item(self, sender: int, message: Any) -> Iterator[Effect]:
        """Take the batches that were asked for."""
        if type(message) is Fetched and self.fetching:
            if message.offset != self.offset:
                return  # a duplicate
            self.silent = False
            yield CancelTimer("idle")
            if self.saves_offset_first() and not self.held:
                self.held, last = message.batches, message.batches[-1]
                self.saved_offset = last.offset + last.count
                yield Save("offset", self.saved_offset)
                yield Sync(("offset", self.attempt))
            elif not self.held:
                yield from self.receive(message.batches)

    def receive(self, batches: tuple) -> Iterator[Effect]:
        """Process batches as there is room."""
        self.ready, self.held, self.fetching = list(batches), (), False
        yield from self.on_room()

    def on_synced(self, token: Hashable) -> Iterator[Effect]:
        """Process the batches whose offset is written."""
        if token[0] != "offset":
            yield from super().on_synced(token)
        elif token[1] == self.attempt and self.running and self.held:
            yield from self.receive(self.held)

    def on_room(self) -> Iterator[Effect]:
        """Pass batches on while every operator has room; then request more."""
        if self.fetching or not self.running:
            return
        while self.ready and all(each.has_room for each in self.out.values()):
            yield from self.emit(self.ready.pop(0))
        if not self.ready:
            yield from self.fetch()

    def emit(self, batch: LogBatch) -> Iterator[Effect]:
        """Send each operator its keys of a batch."""
        records = decode(batch.body)[max(0, self.offset - batch.offset) :]
        columns = [([], []) for _ in self.out]
        for key, count in self.counts(records).items():
            word = key[0] if self.job.window_s else key
            keys, values = columns[self.worker_of(word)]
            keys.append(key)
            values.append(count)
        self.offset = batch.offset + batch.count
        for channel, (keys, values) in zip(self.out.values(), columns, strict=True):
            about = self.partition, batch.offset, tuple(keys), tuple(values)
            yield channel.put(Rows(*about, self.watermark))

    def counts(self, records: list) -> Counter:
        """Count each key, and move the watermark.

        A key is a word, or of a windowed job (word, start of its window).
        """
        flat_map = self.job.flat_map
        if not self.job.window_s:
            if {*map(type, records)} - {str}:
                texts = [record for record in records if type(record) is str]
                self.malformed += len(records) - len(texts)
                records = texts
            return Counter(chain.from_iterable(map(flat_map, records)))
        found = Counter()
        for record in records:
            if not is_event(record):
                self.malformed += 1
                continue
            time, text = record
            start = self.window_of(time)
            found.update((word, start) for word in flat_map(text))
            self.watermark = self.next_watermark(time)
        return found

    # checkpoints and time

    def on_checkpoint(self, checkpoint: int) -> Iterator[Effect]:
        """Send barriers, and write the offset that they stand at."""
        if checkpoint <= self.barrier:
            return
        self.barrier = checkpoint
        for channel in self.out.values():
            yield channel.put(Barrier(checkpoint))
        state = {"offset": self.offset, "watermark": self.watermark}
        yield from self.take_snapshot(checkpoint, state | {"malformed": self.malformed})

    def on_timer(self, name: Hashable) -> Iterator[Effect]:
        """Mark the partition idle, or ask again."""
        if name == "idle" and self.running and self.fetching:
            self.silent = True
            if self.is_idle():
                for channel in self.out.values():
                    yield channel.put(Idle())
        yield from super().on_timer(name)
        if name == "resend" and self.running and self.fetching:
            yield Send(BROKER, Fetch(self.attempt, self.partition, self.offset))
