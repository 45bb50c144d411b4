"""Fault plans as plain data: the kind of each fault, its rank, and its step or time.

`run(fn, 4, faults=[Kill(rank=2, step=3)])` kills rank 2 with SIGKILL as it makes its
third Comm call. A step is the rank's n-th Comm call, counted from 1, the same number
that its trace events have; step 0 is the moment before its function begins.

Workers of a data job have tasks instead of steps: `KillWorker(worker=1, task=3)`. Nodes
that exchange messages have only the time: `Split(0.5, [0], [1, 2])`, `Crash(1, 0.5)`,
`Cut(0.5, 0, 1)`, `Pause(1, 0.5, 2.0)`, `ClockJump(1, 0.5, -3600.0)`.
"""

import math
import random
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import get_args

from distlab.errors import InvalidArgument

__all__ = [
    "ClockDrift",
    "ClockJump",
    "Corrupt",
    "Crash",
    "Cut",
    "Fault",
    "Hang",
    "Kill",
    "KillWorker",
    "NodeFault",
    "Pause",
    "Slow",
    "SlowWorker",
    "Split",
    "Storm",
    "WorkerFault",
    "check_faults",
    "check_node_faults",
    "check_worker_faults",
    "corrupted",
]


@dataclass(frozen=True)
class Kill:
    """The death of `rank` by SIGKILL at the start of its `step`-th Comm call."""

    rank: int
    step: int


@dataclass(frozen=True)
class Hang:
    """A hang of `rank` at the start of its `step`-th Comm call; it stays alive."""

    rank: int
    step: int


@dataclass(frozen=True)
class Slow:
    """A slow `rank`: it gets its processor for only one `factor`-th of the time."""

    rank: int
    factor: float


@dataclass(frozen=True)
class Corrupt:
    """A flipped bit in what `rank` sends in its `step`-th Comm call, without an error.

    It is in the largest number of the message, bit 4 of the second highest byte: in
    float32 and bfloat16 the number is off by an eighth at most, in float64 by half.
    In the reduce-scatter of a ring the sum is then wrong on all ranks alike; in its
    all-gather only on the ranks that the message reaches.
    """

    rank: int
    step: int


def corrupted(thing: object, faults: Iterable["Fault"], rank: int, step: int):
    """Return (message of `rank` in its `step`-th call, True if a fault changed it).

    thing: the original, which stays as it is; only tensors and arrays are corrupted.
    """
    planned = any(
        isinstance(fault, Corrupt) and (fault.rank, fault.step) == (rank, step)
        for fault in faults
    )
    if not planned:
        return thing, False
    if hasattr(thing, "__array_interface__"):
        changed = thing.copy()
        raw, numbers = changed.reshape(-1).view("u1"), changed.reshape(-1)
    elif hasattr(thing, "untyped_storage"):
        changed = thing.detach().clone()
        raw, numbers = changed.untyped_storage(), changed.view(-1)
    else:
        return thing, False
    width = numbers.itemsize
    raw[int(abs(numbers).argmax()) * width + max(width - 2, 0)] ^= 0x10
    return changed, True


@dataclass(frozen=True)
class Storm:
    """Random faults for `run_elastic`, by seed: every process has one ahead of it.

    every: the mean number of Comm calls that a process makes until its fault; as with
        failures of machines, the distribution has no memory of its age.
    kinds: of the faults, each as likely as the others.
    """

    seed: int
    every: int = 500
    kinds: tuple[type, ...] = (Kill, Hang)

    def __call__(self, process: int, replaced: int) -> list["Fault"]:
        """Return the faults of a process that has been replaced `replaced` times."""
        draw = random.Random(f"{self.seed}, {process}, {replaced}")
        step = 1 + int(draw.expovariate(1 / self.every))
        return [draw.choice(self.kinds)(process, step)]


@dataclass(frozen=True)
class KillWorker:
    """The death of `worker` by SIGKILL in its `task`-th task, counted from 1.

    It has done the task's work, and not yet committed it. The worker that replaces it
    goes on counting.
    """

    worker: int
    task: int


@dataclass(frozen=True)
class SlowWorker:
    """A slow `worker`: it gets its processor for only one `factor`-th of the time."""

    worker: int
    factor: float


@dataclass(frozen=True, init=False)
class Split:
    """A network partition from `at_s` on: no message passes between different sides.

    sides: the numbers of the nodes on each; a node on none of them is isolated.
    until_s: the time at which it heals; None for never.
    Messages in flight between two sides at `at_s` are dropped, too.
    """

    at_s: float
    sides: tuple[tuple[int, ...], ...]
    until_s: float | None

    def __init__(
        self, at_s: float, *sides: Iterable[int], until_s: float | None = None
    ):
        object.__setattr__(self, "at_s", at_s)
        object.__setattr__(self, "sides", tuple(tuple(side) for side in sides))
        object.__setattr__(self, "until_s", until_s)


@dataclass(frozen=True)
class Crash:
    """A crash of `node` at `at_s`, which loses all that it had not saved.

    until_s: the time of its restart from its saved state; None for never.
    loses: what its disk loses: "" nothing, as when its process is killed; "unsynced"
        every write that no finished `Sync` covers, as by a power loss; "last write",
        as by a disk that reports it too early; "disk" everything.
    """

    node: int
    at_s: float
    until_s: float | None = None
    loses: str = ""


@dataclass(frozen=True)
class Cut:
    """A link that is cut in one direction from `at_s` on: from node `src` to `dst`.

    until_s: the time at which it heals; None for never.
    """

    at_s: float
    src: int
    dst: int
    until_s: float | None = None


@dataclass(frozen=True)
class Pause:
    """A pause of `node` from `at_s` to `until_s`: it does nothing, and then goes on.

    Messages and timers wait for it, as in a long garbage collection.
    """

    node: int
    at_s: float
    until_s: float


@dataclass(frozen=True)
class ClockJump:
    """A jump of the clock of `node` at `at_s` by `by_s` seconds, forward or back.

    Its timers do not jump.
    """

    node: int
    at_s: float
    by_s: float


@dataclass(frozen=True)
class ClockDrift:
    """A clock of `node`, and its timers, that run at `rate` seconds a second."""

    node: int
    rate: float


Fault = Kill | Hang | Slow | Corrupt
NodeFault = Split | Crash | Cut | Pause | ClockJump | ClockDrift
LOSSES = ("", "unsynced", "last write", "disk")
WorkerFault = KillWorker | SlowWorker


def check_faults(faults: Fault | Iterable[Fault], world_size: int) -> tuple[Fault, ...]:
    """Return `faults`, one or several, as a tuple.

    Raises: InvalidArgument naming the first that does not fit a world of this size.
    """
    faults = _one_or_several(faults, Fault)
    for fault in faults:
        if not isinstance(fault, Fault):
            raise InvalidArgument(
                f"faults takes Kill, Hang, Slow and Corrupt, and got {fault!r}. "
                "For example: faults=[Kill(rank=2, step=3)]"
            )
        if not _whole(fault.rank) or not 0 <= fault.rank < world_size:
            raise InvalidArgument(
                f"{fault} names rank {fault.rank!r}; a world of {world_size} has "
                f"ranks 0 to {world_size - 1}."
            )
        if isinstance(fault, Slow):
            _check_factor(fault)
        elif not _whole(fault.step) or fault.step < 0:
            raise InvalidArgument(
                f"{fault}: step is the n-th Comm call, counted from 1; "
                "0 is before the first."
            )
    return faults


def check_worker_faults(
    faults: WorkerFault | Iterable[WorkerFault], workers: int
) -> tuple[WorkerFault, ...]:
    """Return `faults`, one or several, as a tuple.

    Raises: InvalidArgument naming the first that does not fit so many workers.
    """
    faults = _one_or_several(faults, WorkerFault)
    for fault in faults:
        if not isinstance(fault, WorkerFault):
            raise InvalidArgument(
                f"faults takes KillWorker and SlowWorker, and got {fault!r}. "
                "For example: faults=[KillWorker(worker=1, task=3)]"
            )
        if not _whole(fault.worker) or not 0 <= fault.worker < workers:
            raise InvalidArgument(
                f"{fault} names worker {fault.worker!r}; of {workers} workers the last "
                f"is {workers - 1}."
            )
        if isinstance(fault, SlowWorker):
            _check_factor(fault)
        elif not _whole(fault.task) or fault.task < 1:
            raise InvalidArgument(
                f"{fault}: task is the worker's n-th task, counted from 1."
            )
    return faults


def _one_or_several(faults, kind):
    """Return a tuple; values that are no faults stay in it, to be refused by name."""
    one = isinstance(faults, kind) or not isinstance(faults, Iterable)
    return (faults,) if one else tuple(faults)


def _check_factor(fault):
    number = isinstance(fault.factor, int | float)
    if not number or not 1 <= fault.factor < 1000:
        raise InvalidArgument(
            f"{fault}: factor is how many times slower, from 1 to 999."
        )


def _whole(value):
    return isinstance(value, int) and not isinstance(value, bool)


def check_node_faults(
    faults: NodeFault | Iterable[NodeFault],
    nodes: int,
    kinds: tuple[type, ...] = get_args(NodeFault),
) -> tuple[NodeFault, ...]:
    """Return `faults`, one or several, as a tuple.

    Raises: InvalidArgument naming the first that is of no such kind, or does not fit so
    many nodes.
    """
    faults = _one_or_several(faults, NodeFault)
    for fault in faults:
        if not isinstance(fault, kinds):
            *names, last = [kind.__name__ for kind in kinds]
            raise InvalidArgument(
                f"faults takes {', '.join(names)} and {last} here, and got {fault!r}. "
                "For example: faults=[Split(0.5, [0], [1, 2], until_s=2.0)]"
            )
        named = _named_by(fault)
        for node in named:
            if not _whole(node) or not 0 <= node < nodes:
                raise InvalidArgument(
                    f"{fault} names node {node!r}; of {nodes} nodes the last is "
                    f"{nodes - 1}."
                )
        if len(set(named)) < len(named):
            raise InvalidArgument(f"{fault} names a node twice.")
        _check_amounts(fault)
        if not isinstance(fault, ClockDrift):
            _check_times(fault)
    _check_one_death_at_a_time([f for f in faults if isinstance(f, Crash)])
    return faults


def _named_by(fault):
    if isinstance(fault, Split):
        return sum(fault.sides, ())
    return (fault.src, fault.dst) if isinstance(fault, Cut) else (fault.node,)


def _check_amounts(fault):
    if isinstance(fault, Crash) and fault.loses not in LOSSES:
        known = ", ".join(map(repr, LOSSES))
        raise InvalidArgument(f"{fault}: loses is one of {known}.")
    if isinstance(fault, ClockJump) and not (
        _real(fault.by_s) and math.isfinite(fault.by_s)
    ):
        raise InvalidArgument(f"{fault}: by_s is a number of seconds.")
    drifts = isinstance(fault, ClockDrift)
    if drifts and not (_real(fault.rate) and 0 < fault.rate < 100):
        raise InvalidArgument(f"{fault}: rate is above 0 and below 100; 1 is exact.")


def _check_times(fault):
    until_s = getattr(fault, "until_s", None)
    times = [fault.at_s] if until_s is None else [fault.at_s, until_s]
    if not all(_real(time) and 0 <= time < float("inf") for time in times):
        raise InvalidArgument(f"{fault}: at_s and until_s are seconds from the start.")
    if until_s is not None and until_s <= fault.at_s:
        raise InvalidArgument(f"{fault} ends before it begins.")


def _check_one_death_at_a_time(crashes):
    crashes = sorted(crashes, key=lambda crash: (crash.node, crash.at_s))
    for one, other in pairwise(crashes):
        over = one.until_s is not None and one.until_s <= other.at_s
        if one.node == other.node and not over:
            raise InvalidArgument(f"{other}: the node is dead already, by {one}.")


def _real(value):
    return isinstance(value, int | float) and not isinstance(value, bool)
