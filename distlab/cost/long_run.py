"""A simulation of a job that runs for months on thousands of devices.

    compute ─ save ─ compute ─ save ─ lost ✗ detect ─ wait ─ restart ─ compute ─ ...
                                             │        └ no spare is free
                                             └ until the failure is detected

The closed forms in `failures` model one kind of save, and no spares. This is a
discrete-event simulation with seeded failures.
"""

import heapq
import math
import random
from dataclasses import dataclass, field
from typing import NamedTuple

from distlab.errors import InvalidArgument

__all__ = ["JobSpan", "Life", "LongRun", "simulate"]


class JobSpan(NamedTuple):
    """A job's activity from `start` to `end`, in seconds; see `Life` for the kinds."""

    kind: str
    start: float
    end: float


@dataclass(frozen=True)
class LongRun:
    """A job and its failures; all times in seconds.

    mtbf_s: mean time between failures of the whole job. shape: of the Weibull
        distribution between them; 1 has no memory, below 1 they come in bursts.
    interval_s, save_s: work between two saves, and the time that a save stops it.
    behind_s: the delay until a save counts, if it goes on in the background.
    memory_interval_s, memory_s: as the first two, of saves in the memory of peers;
        0 for none. wide: share of failures in which the peers are lost, too.
    detect_s, restart_s: until a failure is detected, and from then to the next work.
    memory_restart_s: instead of restart_s, if peers have the state.
    spares: devices that stand by. repair_s: until a failed one is a spare again.
    """

    mtbf_s: float
    interval_s: float
    save_s: float
    restart_s: float = 0.0
    detect_s: float = 0.0
    behind_s: float = 0.0
    memory_interval_s: float = 0.0
    memory_s: float = 0.0
    memory_restart_s: float = 0.0
    wide: float = 0.0
    spares: int = 10**9
    repair_s: float = 0.0
    shape: float = 1.0


@dataclass
class Life:
    """The history of a job: its failures and spans.

    spans: in order; kinds are "compute", "save", "lost" (work or a save that a failure
        undid), "detect", "wait" (for a spare) and "restart".
    """

    failures: int = 0
    spans: list[JobSpan] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """The length of the simulated run, in seconds."""
        return self.spans[-1].end

    def total(self, kind: str) -> float:
        """Return the seconds of one kind."""
        return sum(span.end - span.start for span in self.spans if span.kind == kind)

    @property
    def goodput(self) -> float:
        """The share of the time that went into work that was kept, 0 to 1."""
        return self.total("compute") / self.seconds


def simulate(job: LongRun, seconds: float, seed: int = 0) -> Life:
    """Return the life of a job over `seconds`.

    Raises: InvalidArgument for an interval that is not positive.
    """
    if min(job.interval_s, job.mtbf_s) <= 0:
        raise InvalidArgument(
            f"interval_s={job.interval_s}, mtbf_s={job.mtbf_s}: both are seconds, and "
            "greater than 0."
        )
    return _Simulation(job, seconds, seed).life


class _Simulation:
    """The state of a simulation: time, the next failure, and the saves.

    safe, near: the number of spans saved on disk, and in the memory of peers.
    """

    def __init__(self, job, seconds, seed):
        self.job, self.until, self.life = job, seconds, Life()
        # One draw for each failure and one for its width, independent of the job's
        # activity: two jobs with one seed have the same failures.
        self.draw = random.Random(seed)
        self.now, self.fails_at = 0.0, 0.0
        self.safe = self.near = 0
        self.counts = []  # saves in the background: (end, number of spans saved)
        self.broken = []  # the times at which devices are repaired
        self._next_failure()
        while self.now < self.until:
            self._work()

    def _next_failure(self):
        """Draw the time of the next failure, from the last one on."""
        scale = self.job.mtbf_s / math.gamma(1 + 1 / self.job.shape)
        self.fails_at += self.draw.weibullvariate(scale, self.job.shape)
        self.wide = self.draw.random() < self.job.wide

    def _pass(self, kind, seconds):
        """Advance the time; return True if no failure came first."""
        end = min(self.now + seconds, self.until)
        whole = end <= self.fails_at
        end = min(end, self.fails_at)
        if end > self.now:
            self.life.spans.append(JobSpan(kind, self.now, end))
        self.now = end
        return whole

    def _work(self):
        """Compute one interval and save it, or recover from a failure on the way."""
        job, left = self.job, self.job.interval_s
        while left > 0 and self.now < self.until:
            piece = min(left, job.memory_interval_s or left)
            if not self._pass("compute", piece):
                return self._fail()
            left -= piece
            if left > 0 or job.memory_interval_s:
                if not self._pass("save", job.memory_s):
                    return self._fail()
                self.near = len(self.life.spans)
        if not self._pass("save", job.save_s):
            return self._fail()
        heapq.heappush(self.counts, (self.now + job.behind_s, len(self.life.spans)))

    def _fail(self):
        """Mark unsaved work as lost; detect the failure, wait for a device, restart."""
        job, life = self.job, self.life
        while self.counts and self.counts[0][0] <= self.now:
            self.safe = max(self.safe, heapq.heappop(self.counts)[1])
        self.counts.clear()
        from_peers = bool(job.memory_interval_s) and not self.wide
        kept = max(self.safe, self.near) if from_peers else self.safe
        for at in range(kept, len(life.spans)):
            if life.spans[at].kind in ("compute", "save"):
                life.spans[at] = life.spans[at]._replace(kind="lost")
        self.near = min(self.near, kept)
        starts_s = job.memory_restart_s if from_peers else job.restart_s
        self.safe = max(self.safe, kept)
        back = False
        while not back and self.now < self.until:
            life.failures += 1
            self._next_failure()
            back = (
                self._pass("detect", job.detect_s)
                and self._pass("wait", self._wait_s())
                and self._pass("restart", starts_s)
            )

    def _wait_s(self):
        """Return the seconds until a device is free, and take it."""
        while self.broken and self.broken[0] <= self.now:
            heapq.heappop(self.broken)
        heapq.heappush(self.broken, self.now + self.job.repair_s)
        if len(self.broken) <= self.job.spares:
            return 0.0
        return sorted(self.broken)[len(self.broken) - self.job.spares - 1] - self.now
