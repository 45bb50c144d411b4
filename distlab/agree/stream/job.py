"""`word_count_job`: the reference job, as nodes of one run, and its truth.

client ─▶ broker 0 ─▶ sources 2, 3 ─▶ operators 4, 5 ─▶ broker 0
                      coordinator 1
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from distlab.agree.stream.broker import COMMITTED, Broker
from distlab.agree.stream.coordinator import CheckpointCoordinator
from distlab.agree.stream.log import LogBatch, PartitionLog, decode
from distlab.agree.stream.operators import KeyedCount
from distlab.agree.stream.source import SourceTask, is_event
from distlab.agree.stream.tasks import BROKER, COORDINATOR
from distlab.errors import InvalidArgument
from distlab.network import Client, Node, Outcome
from distlab.trace import Call

__all__ = [
    "GUARANTEES",
    "SINKS",
    "StreamJob",
    "StreamResult",
    "truth",
    "word_count_job",
]

GUARANTEES = ("at most once", "at least once", "effectively once")
SINKS = ("plain", "idempotent", "transactional")


def split_words(text: str) -> list[str]:
    """Return the words of a text."""
    return text.split()


class StreamJob(NamedTuple):
    """A job; called as job(me, peers) it makes its nodes: `simulate(job, job.nodes)`.

    flat_map: text of a record -> keys. window_s: of a tumbling window, 0 for none; with
    windows records are [event time, text]. disorder_s: how far an event may be behind
    the latest. lateness_s: how long a window is kept after the watermark.
    idle_s: the time-out after which a silent partition is idle. every_s: between two
    checkpoints. capacity: frames on a channel without credit. work_s: the time that an
    operator takes for a batch. kinds: classes of broker, coordinator, source, operator.
    """

    partitions: int = 2
    workers: int = 2
    guarantee: str = "effectively once"
    sink: str = "transactional"
    flat_map: Callable = split_words
    window_s: float = 0
    disorder_s: float = 0
    lateness_s: float = 0
    idle_s: float = 0.1
    every_s: float = 0.05
    resend_s: float = 0.05
    capacity: int = 8
    work_s: float = 0
    kinds: tuple = (Broker, CheckpointCoordinator, SourceTask, KeyedCount)
    input: tuple = ()

    @property
    def sources(self) -> range:
        """The nodes of the sources, one for each partition."""
        return range(2, 2 + self.partitions)

    @property
    def operators(self) -> range:
        """The nodes of the operators."""
        return range(2 + self.partitions, self.nodes)

    @property
    def tasks(self) -> range:
        """The nodes of sources and operators."""
        return range(2, self.nodes)

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return 2 + self.partitions + self.workers

    def output_of(self, operator: int) -> int:
        """Return the partition that an operator's sink writes to."""
        return self.partitions + operator - self.operators[0]

    def __call__(self, me: int, peers: Sequence[int]) -> Node:
        """Return node `me` of the job."""
        broker, coordinator, source, operator = self.kinds
        job = self._replace(input=())
        if me == BROKER:
            node = broker(me, peers, inputs=self.partitions, outputs=self.workers)
            node.input = self.input
            return node
        if me == COORDINATOR:
            return coordinator(me, peers, job)
        return (source if me in self.sources else operator)(me, peers, job)

    def clients(
        self,
        lines: Sequence,
        *,
        batch: int = 10,
        wait: bool = True,
        by_partition: bool = False,
        **how: Any,
    ) -> list[Client]:
        """Return clients that append records to the log, and one that waits.

        lines: records, dealt to the partitions in turn; or `by_partition`, a list of
            records for each. batch: records in one append.
        how: of each `Client`; they ask again until they are answered.
        """
        count = range(self.partitions)
        parts = [
            list(lines[p] if by_partition else lines[p :: len(count)]) for p in count
        ]
        how = {"timeout_s": 1.0, "retries": 1000} | how
        clients = []
        for partition, part in enumerate(parts):
            batches = [part[at : at + batch] for at in range(0, len(part), batch)]
            name = f"input {partition}"
            calls = [
                Call("produce", partition, (name, 0, number, records))
                for number, records in enumerate(batches)
            ]
            clients.append(Client(BROKER, calls, **how))
        if wait:
            ends = {p: len(part) for p, part in enumerate(parts) if part}
            clients.append(Client(COORDINATOR, [Call("wait", None, ends)], **how))
        return clients

    def result(self, outcome: Outcome) -> "StreamResult":
        """Compare what a run has counted with the truth of its log."""
        complete, offsets = outcome.saved[COORDINATOR].get("complete", (0, {}))
        state = Counter()
        for node in self.operators:
            snapshot = outcome.saved[node].get(f"snapshot {complete % 2}")
            if complete and snapshot:
                state.update(snapshot.state["counts"])
        logs = _logs(outcome.saved[BROKER], self.partitions + self.workers)
        output = _output(outcome.saved[BROKER], logs[self.partitions :], self.window_s)
        inputs = logs[: self.partitions]
        return StreamResult(
            truth(inputs, flat_map=self.flat_map, window_s=self.window_s),
            truth(inputs, offsets, flat_map=self.flat_map, window_s=self.window_s),
            state,
            output,
        )


class StreamResult(NamedTuple):
    """Counts by key: of the log, of the log up to the last checkpoint, and of the job.

    truth: of the whole log. truth_so_far: up to the offsets of the last complete
    checkpoint. state: of the operators in it. output: of what readers of committed
    records have got.
    """

    truth: Counter
    truth_so_far: Counter
    state: Counter
    output: Counter

    @property
    def doubled(self) -> int:
        """How many words the output has too many."""
        return (self.output - self.truth).total()

    @property
    def lost(self) -> int:
        """How many words the output lacks."""
        return (self.truth - self.output).total()


def truth(
    logs: Sequence[Sequence[LogBatch]],
    offsets: dict[int, int] | None = None,
    *,
    flat_map: Callable = split_words,
    window_s: float = 0,
) -> Counter:
    """Count the words of a log, up to offsets if given, in one plain loop.

    logs: partition -> its batches.
    """
    counts = Counter()
    for partition, batches in enumerate(logs):
        end = math.inf if offsets is None else offsets.get(partition, 0)
        for batch in batches:
            for at, record in enumerate(decode(batch.body), batch.offset):
                if at >= end:
                    break
                if not window_s:
                    counts.update(flat_map(record) if type(record) is str else ())
                elif is_event(record):
                    start = record[0] // window_s * window_s
                    counts.update((word, start) for word in flat_map(record[1]))
    return counts


def _logs(saved, count):
    return [PartitionLog.load(number, saved)[0].batches for number in range(count)]


def _output(saved, logs, window_s):
    """Return the counts in committed output; of a window the last one counts."""
    states = {}
    for *_, each in saved.get("producers", ()):
        states.update(each)
    counts = Counter()
    for batches in logs:
        for batch in batches:
            if batch.txn is None or states.get(batch.txn) == COMMITTED:
                for row in decode(batch.body):
                    if window_s:
                        counts[row[0], row[1]] = row[2]
                    else:
                        counts[row[0]] += row[1]
    return counts


def word_count_job(
    partitions: int = 2,
    workers: int = 2,
    guarantee: str = "effectively once",
    sink: str | None = None,
    **how: Any,
) -> StreamJob:
    """Return a job that counts the words of a log, by word.

    guarantee: "at most once" (the offset is written before processing), "at least once"
    (after it, and barriers are not aligned), or "effectively once". sink: "plain",
    "idempotent" or "transactional", the default if effectively once. how: fields of
    `StreamJob`; broker, coordinator, source and operator are classes in place of ours.

    Raises: InvalidArgument.
    """
    if guarantee not in GUARANTEES:
        raise InvalidArgument(f"guarantee={guarantee!r}: one of {GUARANTEES}.")
    exact = guarantee == "effectively once"
    sink = sink or ("transactional" if exact else "plain")
    if sink not in SINKS:
        raise InvalidArgument(f"sink={sink!r}: one of {SINKS}.")
    for name, count in (("partitions", partitions), ("workers", workers)):
        if type(count) is not int or not 1 <= count <= 30:
            raise InvalidArgument(f"{name}={count!r}: give a number from 1 to 30.")
    roles = ("broker", "coordinator", "source", "operator")
    kinds = StreamJob._field_defaults["kinds"]
    kinds = tuple(how.pop(r, k) for r, k in zip(roles, kinds, strict=True))
    try:
        return StreamJob(partitions, workers, guarantee, sink, kinds=kinds, **how)
    except TypeError as error:
        raise InvalidArgument(f"word_count_job: {error}") from None
