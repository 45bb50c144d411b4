"""A scheduler of jobs on a cluster, on a virtual clock: queues, gangs, preemption.

arrives ─▶ queue ─ rule(free, tasks, gpus) ─▶ holds places ─▶ has all: runs ─▶ ends
             ▲                                                 │ preempted
             └─────── less the work since its last checkpoint ─┘

The rule is the caller's: one task at a time, as plain Kubernetes places pods, or all of
a job or none. A job runs once all its tasks have a place, and holds GPUs before that.
"""

import heapq
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field

from distlab.errors import InvalidArgument

__all__ = ["ClusterJob", "JobSchedule", "place_all_or_none", "place_one", "schedule"]

Rule = Callable[[Mapping[str, int], int, int], Sequence[str] | None]


@dataclass(frozen=True)
class ClusterJob:
    """`tasks` tasks of `gpus` GPUs each, which work together for `hours` hours.

    arrives: hours after the start. priority: the greater is placed first.
    interval_h: hours between checkpoints; without them a preemption loses all work.
    restart_h: hours from its places to work, after a preemption.
    """

    name: str
    tasks: int
    gpus: int
    hours: float
    _: KW_ONLY
    arrives: float = 0.0
    priority: int = 0
    interval_h: float = math.inf
    restart_h: float = 0.0


@dataclass
class JobSchedule:
    """The result of `schedule`, in hours.

    cells: (node's index, start, end, what, None), for `show.pipeline(.., rows=nodes)`;
        what is the job's name, "idle" for a place that is held, "lost" for lost work.
    waits: job -> hours from its arrival to its first work. ends: job -> when it ended.
    stuck: jobs that hold some of their places, and never get the others.
    """

    nodes: list[str]
    cells: list[tuple] = field(default_factory=list)
    waits: dict[str, float] = field(default_factory=dict)
    ends: dict[str, float] = field(default_factory=dict)
    stuck: list[str] = field(default_factory=list)
    useful: float = 0.0  # GPU hours of work that counts
    capacity: int = 0

    @property
    def hours(self) -> float:
        """The end of the last job."""
        return max(self.ends.values(), default=0.0)

    @property
    def goodput(self) -> float:
        """The share of all GPU hours, up to the last end, that was work that counts."""
        return self.useful / (self.capacity * self.hours) if self.hours else 0.0


def place_one(free: Mapping[str, int], tasks: int, gpus: int) -> list[str]:
    """Return a node for the next task alone, as one pod after the other is placed."""
    return [node for node, spare in free.items() if spare >= gpus][:1]


def place_all_or_none(free: Mapping[str, int], tasks: int, gpus: int):
    """Return a node for each task, on as few nodes as possible; None if not all fit."""
    nodes = []
    for node, spare in sorted(free.items(), key=lambda item: -item[1]):
        nodes += [node] * min(spare // gpus, tasks - len(nodes))
    return nodes if len(nodes) == tasks else None


def schedule(
    jobs: Sequence[ClusterJob],
    nodes: Mapping[str, int],
    rule: Rule = place_all_or_none,
    *,
    backfill: str = "none",
    preempt: bool = False,
) -> JobSchedule:
    """Run jobs on nodes, each with so many GPUs, until nothing can happen any more.

    rule(free, tasks, gpus) returns nodes for one or more of the tasks that a job still
    needs, or None. It is asked for the waiting jobs, by priority and arrival, in turn.
    backfill: "none": a job waits for those before it; "any": whatever fits is placed,
        as Kubernetes places pods; "reserved": only what ends before the first job of
        the queue could start (EASY backfill).
    preempt: end running jobs of a lower priority if that makes room for the first.

    Raises: InvalidArgument for a job that no empty cluster has room for.
    """
    for job in jobs:
        if sum(gpus // job.gpus for gpus in nodes.values()) < job.tasks:
            raise InvalidArgument(
                f"{job.name} needs {job.tasks} places of {job.gpus} GPUs, and the "
                f"cluster has {sum(g // job.gpus for g in nodes.values())} in all."
            )
    if backfill not in ("none", "any", "reserved"):
        raise InvalidArgument(f"backfill is none, any or reserved, not {backfill!r}.")
    return _VirtualCluster(jobs, nodes, rule, backfill, preempt).run()


class _Entry:
    """A job in the system: its places, its work done, and the run under way."""

    def __init__(self, job, number):
        self.job, self.order = job, (-job.priority, job.arrives, number)
        self.held, self.done, self.began, self.ends, self.run = [], 0.0, None, 0.0, 0

    @property
    def restart(self):
        return self.job.restart_h if self.run > 1 else 0.0


class _VirtualCluster:
    """The events in order of time: arrivals, and ends of runs."""

    def __init__(self, jobs, nodes, rule, backfill, preempt):
        self.free, self.names, self.rule = dict(nodes), list(nodes), rule
        self.backfill, self.preempt = backfill, preempt
        self.found = JobSchedule(self.names, capacity=sum(nodes.values()))
        self.waiting, self.running, self.now = [], [], 0.0
        self.events, self.count = [], itertools.count()
        for number, job in enumerate(jobs):
            self._at(job.arrives, _Entry(job, number), 0)

    def _at(self, when, entry, run):
        heapq.heappush(self.events, (when, next(self.count), entry, run))

    def run(self):
        """Return the schedule once no event is left."""
        while self.events:
            self.now, _, entry, run = heapq.heappop(self.events)
            if run == 0:
                self.waiting.append(entry)
            elif entry.run == run and entry in self.running:
                self._end(entry)
            else:
                continue  # the end of a run that was preempted
            if not self.events or self.events[0][0] > self.now:
                self._place()
        self.found.stuck = [e.job.name for e in self.waiting if e.held]
        for entry in self.waiting:
            self._draw(entry, "idle", self.now, self.now + entry.job.hours)
        return self.found

    def _place(self):
        """Offer places to waiting jobs, in turn, until nothing moves."""
        moved = True
        while moved:
            self.waiting.sort(key=lambda entry: entry.order)
            moved = any([self._offer(entry) for entry in self._offered()])
            if not moved and self.preempt and self.waiting:
                moved = self._evict_for(self.waiting[0])

    def _offered(self):
        """Return the waiting jobs that may have places now."""
        first, rest = self.waiting[:1], self.waiting[1:]
        if self.backfill == "any" or not first:
            return first + rest
        if self.backfill == "none":
            return first
        by = self._could_start(first[0])
        return first + [each for each in rest if self.now + _left(each) <= by]

    def _could_start(self, entry):
        """Return the time at which the first job of the queue could start."""
        free, at = dict(self.free), self.now
        for each in sorted(self.running, key=lambda each: each.ends):
            if self.rule(free, entry.job.tasks, entry.job.gpus):
                break
            for node, _ in each.held:
                free[node] += each.job.gpus
            at = each.ends
        return at

    def _offer(self, entry):
        job = entry.job
        placed = self.rule(dict(self.free), job.tasks - len(entry.held), job.gpus) or ()
        for node in placed:
            self.free[node] -= job.gpus
            entry.held.append((node, self.now))
        if len(entry.held) == job.tasks:
            self._start(entry)
        return bool(placed)

    def _start(self, entry):
        self._draw(entry, "idle", None, self.now)
        self.waiting.remove(entry)
        self.running.append(entry)
        entry.began, entry.ends = self.now, self.now + _left(entry)
        entry.run += 1
        self.found.waits.setdefault(entry.job.name, float(self.now - entry.job.arrives))
        self._at(entry.ends, entry, entry.run)

    def _end(self, entry):
        self._draw(entry, entry.job.name, entry.began, self.now)
        self._release(entry)
        self.found.ends[entry.job.name] = self.now
        self.found.useful += entry.job.hours * entry.job.tasks * entry.job.gpus

    def _evict_for(self, entry):
        """Preempt jobs of a lower priority, the youngest run first; True if any was."""
        lower = [e for e in self.running if e.job.priority < entry.job.priority]
        free, victims = dict(self.free), []
        for each in sorted(lower, key=lambda e: (e.job.priority, -e.began)):
            if self.rule(free, entry.job.tasks, entry.job.gpus):
                break
            victims.append(each)
            for node, _ in each.held:
                free[node] += each.job.gpus
        if not self.rule(free, entry.job.tasks, entry.job.gpus):
            return False
        for each in victims:
            self._preempt(each)
        return bool(victims)

    def _preempt(self, entry):
        """End a run; what it did since its last checkpoint is lost."""
        worked = max(0.0, self.now - entry.began - entry.restart)
        between = entry.job.interval_h
        kept = 0.0 if math.isinf(between) else worked // between * between
        saved = self.now - (worked - kept)
        self._draw(entry, entry.job.name, entry.began, saved)
        self._draw(entry, "lost", saved, self.now)
        entry.done += kept
        self._release(entry)
        self.waiting.append(entry)

    def _release(self, entry):
        self.running.remove(entry)
        for node, _ in entry.held:
            self.free[node] += entry.job.gpus
        entry.held = []

    def _draw(self, entry, what, start, end):
        for node, since in entry.held:
            begin = since if start is None else start
            begin = max(begin, since) if what == "idle" else begin
            if end > begin:
                row = self.names.index(node)
                self.found.cells.append((row, begin, end, what, None))


def _left(entry):
    """Return the hours from its places to its end."""
    again = entry.job.restart_h if entry.run else 0.0
    return again + entry.job.hours - entry.done
