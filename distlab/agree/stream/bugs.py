"""Seven jobs that each break one rule, and how each is found: `hunt("...", seed)`.

from distlab.agree.stream.bugs import BUGS, hunt
found = hunt("flush before snapshot")       # a Counterexample: its schedule, why
"""

from typing import Any, NamedTuple

from distlab.agree.stream.broker import Broker
from distlab.agree.stream.job import StreamJob, word_count_job
from distlab.agree.stream.monitors import idle_inputs_ignored, stream_monitors
from distlab.agree.stream.operators import KeyedCount
from distlab.agree.stream.source import SourceTask
from distlab.errors import InvalidArgument
from distlab.network import Client, Delivery, fuzz
from distlab.network.schedules.counterexample import Counterexample, NotFound
from distlab.trace import Call

__all__ = ["BUGS", "RIGHT", "StreamBug", "fuzz_job", "hunt"]


class UnalignedBarrier(KeyedCount):
    """Counts on from an input whose barrier has come, as if it were aligned."""

    def is_blocked(self, source):
        """Block no input."""
        return False


class OffsetBeforeState(SourceTask):
    """Writes its offset before the records are in anybody's state."""

    def saves_offset_first(self):
        """Write the offset first."""
        return True


class FlushBeforeSnapshot(KeyedCount):
    """Commits its output at the barrier, before the checkpoint is complete."""

    def commits_at_barrier(self):
        """Commit early."""
        return True


class LargestWatermark(KeyedCount):
    """Takes the maximum of the inputs' watermarks."""

    def combined_watermark(self):
        """Return the maximum."""
        return max(self.input_marks.values())


class IdleStopsTime(SourceTask):
    """Does not tell that its partition is silent."""

    def is_idle(self):
        """Return False, however silent."""
        return False


class NewIdsOnReplay(KeyedCount):
    """Numbers its writes by attempt, so that a replayed one is a new one."""

    def write_id(self, rows, origin):
        """Return an id of this attempt."""
        return self.attempt, self.out[0].next


class NoEpochs(Broker):
    """Takes the writes of a producer that was replaced."""

    def is_fenced(self, name, epoch):
        """Fence no producer."""
        return False


RIGHT = {"broker": Broker, "source": SourceTask, "operator": KeyedCount}


class StreamBug(NamedTuple):
    """A rule that is broken: its class, the job it is in, and how it is searched.

    role: "broker", "source" or "operator". words: of the property that it breaks.
    """

    role: str
    kind: type
    words: str
    job: dict[str, Any]
    faults: dict[str, Any]


_LINES = ((["a b"], ["a"]), (["b"], ["c"]))
_TIMED = (([[1, "a"], [25, "a b"]],), ([[2, "b"]],))
_COUNT = {"input": _LINES, "workers": 1, "every_s": 0.006}
_ONE = _COUNT | {"input": _LINES[:1], "partitions": 1}
_WINDOWS = {"input": _TIMED, "workers": 1, "window_s": 10, "idle_s": 0.02, "every_s": 9}
_CRASH = {"crashes": 2}

BUGS = {
    "unaligned barrier": StreamBug(
        "operator",
        UnalignedBarrier,
        "exact snapshots",
        _COUNT | {"every_s": 0.001},
        {"delivery": Delivery((0.001, 0.01))},
    ),
    "offset before state": StreamBug(
        "source", OffsetBeforeState, "exact snapshots", _ONE, _CRASH
    ),
    "flush before snapshot": StreamBug(
        "operator", FlushBeforeSnapshot, "exact output", _ONE, _CRASH
    ),
    "maximum of watermarks": StreamBug(
        "operator", LargestWatermark, "safe watermarks", _WINDOWS, {}
    ),
    "idle partition": StreamBug("source", IdleStopsTime, "idle inputs", _WINDOWS, {}),
    "replay under new ids": StreamBug(
        "operator",
        NewIdsOnReplay,
        "exact output",
        _ONE | {"sink": "idempotent"},
        _CRASH,
    ),
    "zombie without epoch": StreamBug(
        "broker",
        NoEpochs,
        "fenced producers",
        _ONE,
        _CRASH | {"delivery": Delivery((0.001, 0.03))},
    ),
}


def hunt(
    name: str, seed: int = 0, *, kind: type | None = None, **how: Any
) -> Counterexample | NotFound:
    """Search for a run that a bug breaks, and shrink it.

    kind: a class in its place, such as `RIGHT[BUGS[name].role]`, or a
        learner's. how: of `fuzz`.

    Raises: InvalidArgument for an unknown name.
    """
    if name not in BUGS:
        raise InvalidArgument(f"{name!r} is no bug here: {', '.join(BUGS)}.")
    bug = BUGS[name]
    job = word_count_job(**bug.job, **{bug.role: kind or bug.kind})
    return fuzz_job(job, seed, **bug.faults | how)


def fuzz_job(job: StreamJob, seed: int = 0, **how: Any) -> Counterexample | NotFound:
    """Run a job at random, watched by its monitors, until a run breaks one of them."""
    clients, check = (), None
    if job.window_s:
        more = [Call("produce", 0, ("more", 0, n, [[26 + n, "a"]])) for n in range(3)]
        clients, check = [Client(0, more, pause_s=0.03)], idle_inputs_ignored(job)
    how = {"until_s": 0.2, "timeout_s": None, "within_s": 120.0} | how
    how["settled"] = bool(check)
    watch = {"monitors": stream_monitors(job), "seed": seed}
    return fuzz(job, job.nodes, clients, check, **watch, **how)
