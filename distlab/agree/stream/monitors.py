"""Monitors of a job: what must hold in every run, for any implementation.

    ExactSnapshots    a complete checkpoint has the counts of the log up to its offsets
    ExactOutput       no word is put out too often; what a checkpoint covers is there
    SafeWatermarks    a watermark is not beyond that of the slowest input
    FencedProducers   nothing is appended by a producer whose epoch is over

Each remembers the run, also what a crash has erased. They read snapshots, logs and
marks from the nodes; `TaskView` is what they need of an operator or a source.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from distlab.agree.stream.broker import COMMITTED
from distlab.agree.stream.job import StreamJob, truth
from distlab.agree.stream.log import decode
from distlab.agree.stream.tasks import BROKER, COORDINATOR
from distlab.network import Monitor, Node, Outcome

__all__ = [
    "ExactOutput",
    "ExactSnapshots",
    "FencedProducers",
    "SafeWatermarks",
    "TaskView",
    "idle_inputs_ignored",
    "stream_monitors",
    "task_view",
]


class TaskView(NamedTuple):
    """What monitors read of a task.

    attempt: that it works in, 0 if in none. snapshots: (attempt, checkpoint) ->
    (offset, counts): the offset of a source, the counts of an operator, or None.
    watermark: of an operator, None of a source. marks: input -> its
    last watermark, without idle inputs. idles: how often an input has become idle.
    """

    attempt: int
    snapshots: dict[tuple, tuple]
    watermark: float | None
    marks: dict[int, float]
    idles: int


def task_view(node: Node) -> TaskView:
    """Return the view of a task of ours."""
    taken = {
        each[:2]: (each.state.get("offset"), each.state.get("counts"))
        for each in node.snapshots.values()
    }
    marks = getattr(node, "input_marks", {})
    marks = {k: v for k, v in marks.items() if k not in node.idle}
    attempt = node.attempt if node.running else 0
    idles = getattr(node, "idles", 0)
    return TaskView(attempt, taken, getattr(node, "watermark", None), marks, idles)


@dataclass
class StreamMonitor(Monitor):
    """A monitor of a job, which knows the log. logs: the batches of the
    input, by partition."""

    job: StreamJob
    view: Callable[[Node], TaskView] = task_view
    logs: list = field(default_factory=list)

    def observe(self, nodes: Sequence[Node | None], node: int) -> None:
        """Look at the node that has acted, unless it is dead.

        Raises: AssertionError that names the property, and what broke it.
        """
        one = nodes[node]
        if node == BROKER and one:
            ends = sum(len(log.batches) for log in one.logs[: self.job.partitions])
            if ends != sum(map(len, self.logs)):
                logs = one.logs[: self.job.partitions]
                self.logs = [tuple(log.batches) for log in logs]
        self.look(node, one)

    def look(self, node: int, one: Any) -> None:
        """Check the property, and remember what later checks need."""
        raise NotImplementedError

    def truth(self, offsets: dict[int, int] | None = None) -> Counter:
        """Return the counts of the log."""
        job = self.job
        return truth(self.logs, offsets, flat_map=job.flat_map, window_s=job.window_s)


@dataclass
class ExactSnapshots(StreamMonitor):
    """The counts in a complete checkpoint are those of the log up to its offsets.

    taken: (node, attempt, checkpoint) -> (offset, counts).
    """

    taken: dict = field(default_factory=dict)
    complete: int = 0

    def look(self, node: int, one: Any) -> None:
        """Remember snapshots; compare them when a checkpoint becomes complete."""
        if one and node in self.job.tasks:
            for at, (offset, counts) in self.view(one).snapshots.items():
                if (node, *at) not in self.taken:
                    copy = None if counts is None else dict(counts)
                    self.taken[node, *at] = offset, copy
        if one and node == COORDINATOR and one.complete > self.complete:
            self.complete = one.complete
            self.compare(one.attempt)

    def compare(self, attempt: int) -> None:
        """Compare the snapshots of a checkpoint with the log."""
        at, offsets, counts = (attempt, self.complete), {}, Counter()
        for number, task in enumerate(self.job.tasks):
            offset, its = self.taken.get((task, *at), (None, None))
            assert (offset, its) != (None, None), (
                f"exact snapshots: checkpoint {self.complete} is complete without node "
                f"{task}"
            )
            if offset is not None:
                offsets[number] = offset
            counts.update(its or {})
        wanted = self.truth(offsets)
        assert counts == wanted, (
            f"exact snapshots: checkpoint {self.complete}, of offsets {offsets}, has "
            f"{_difference(counts, wanted)}"
        )


@dataclass
class ExactOutput(StreamMonitor):
    """What readers of committed records get: no word too often, none missing.

    visible: counts of committed output. size: of what they were made from.
    """

    visible: Counter = field(default_factory=Counter)
    size: tuple = ()
    checked: int = 0

    def look(self, node: int, one: Any) -> None:
        """Count the output anew if it has changed, and compare."""
        if node == BROKER and one:
            self.count(one)
            more = self.visible - self.truth()
            assert self.may_double() or not more, (
                f"exact output: {_words(more)} put out too often"
            )
        done = node == COORDINATOR and one and one.phase == "idle"
        if done and one.complete > self.checked:
            self.checked = one.complete
            less = self.truth(one.offsets) - self.visible
            assert not less or self.job.guarantee == "at most once", (
                f"exact output: checkpoint {one.complete} is committed, and its "
                f"output lacks {_words(less)}"
            )

    def may_double(self) -> bool:
        """Return True of a job that promises no more than at least once."""
        plain = self.job.sink == "plain" and self.job.guarantee == "effectively once"
        return plain or self.job.guarantee == "at least once"

    def count(self, broker: Any) -> None:
        """Count the committed output."""
        logs = broker.logs[self.job.partitions :]
        states = broker.txns
        size = tuple(log.end for log in logs), tuple(states.values())
        if size != self.size:
            self.size, self.visible = size, Counter()
            for log in logs:
                for batch in log.batches:
                    if batch.txn is None or states[batch.txn] == COMMITTED:
                        for word, count in decode(batch.body):
                            self.visible[word] += count


@dataclass
class SafeWatermarks(StreamMonitor):
    """A watermark rises to that of the slowest input that is not idle, at most.

    An input that is idle before an event or after it may be behind.
    last: operator -> its view after the event before.
    """

    last: dict = field(default_factory=dict)

    def look(self, node: int, one: Any) -> None:
        """Compare a watermark that has risen with the inputs' own."""
        if not one or node not in self.job.operators:
            return
        view, before = self.view(one), self.last.get(node)
        self.last[node] = view._replace(snapshots={})
        if not before or before.attempt != view.attempt or not view.attempt:
            return
        if view.idles != before.idles:
            return  # among several items of one event
        active = [mark for each, mark in view.marks.items() if each in before.marks]
        slowest = min(active, default=view.watermark)
        assert view.watermark <= max(slowest, before.watermark), (
            f"safe watermarks: that of node {node} is {view.watermark:g}, and an input "
            f"is at {slowest:g}"
        )


@dataclass
class FencedProducers(StreamMonitor):
    """No batch is appended by a producer after a newer one has begun its epoch.

    epochs: producer -> the newest epoch. ends: partition -> how many batches were seen.
    """

    epochs: dict = field(default_factory=dict)
    ends: list = field(default_factory=list)

    def look(self, node: int, one: Any) -> None:
        """Look at the batches that are new."""
        if node != BROKER:
            return
        if not one:  # a power loss may take back an epoch, and batches
            self.epochs, self.ends = {}, []
            return
        ends = self.ends or [len(log.batches) for log in one.logs]
        for log, seen in zip(one.logs, ends, strict=True):
            for batch in log.batches[seen:]:
                name, epoch, number = batch.producer
                newest = self.epochs.get(name, 0)
                assert epoch >= newest, (
                    f"fenced producers: partition {log.number} has write {number} of "
                    f"{name!r} in epoch {epoch}, and epoch {newest} had begun"
                )
        self.ends = [len(log.batches) for log in one.logs]
        self.epochs = {name: each.epoch for name, each in one.producers.items()}


def idle_inputs_ignored(job: StreamJob) -> Callable[[Outcome], bool]:
    """Return a check, for settled outcomes: silent partitions do not stop time."""

    def check(outcome):
        tasks = outcome.nodes
        sources = [tasks[n] for n in job.sources]
        if not all(source.running for source in sources):
            return True
        talking = [s.watermark for s in sources if not s.silent]
        for node in job.operators:
            one, time = tasks[node], min(talking, default=None)
            same = all(s.attempt == one.attempt for s in sources)
            if time is None or not same or any(s.out[node].waiting for s in sources):
                continue  # in a schedule messages may still be under way
            assert one.watermark >= time, (
                f"idle inputs: node {node} is at {one.watermark:g}; all partitions "
                f"with records are at {time:g}, and the others are silent"
            )
        return True

    return check


def stream_monitors(job: StreamJob) -> list[Monitor]:
    """Return the monitors of what a job promises."""
    exact = [ExactSnapshots] if job.guarantee == "effectively once" else []
    kinds = [SafeWatermarks] if job.window_s else [*exact, ExactOutput]
    kinds.append(FencedProducers)
    return [kind(job) for kind in kinds]


def _difference(counts, wanted):
    more, less = counts - wanted, wanted - counts
    return " and ".join(
        f"{_words(each)} too {how}"
        for each, how in ((more, "often"), (less, "seldom"))
        if each
    )


def _words(counts):
    return ", ".join(f"{word!r} {n} times" for word, n in sorted(counts.items())[:3])
