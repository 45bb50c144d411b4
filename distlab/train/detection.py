"""Detection of failures: heartbeats, suspicion, and ranks that compute wrongly.

    rank 1  ─ beat ── beat ── beat ─✗
    rank 0      │       │       │        phi 0.3 ... 2 ... 8: suspected
                ▼       ▼       ▼

A monitor never knows that a rank is dead. It knows the time since the last heartbeat,
and how unusual that is.
"""

import hashlib
import math
import random
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import NormalDist, fmean
from typing import NamedTuple

import torch

from distlab.errors import InvalidArgument
from distlab.train.replica_checks import judged_by_rank_0

__all__ = [
    "DetectorOutcome",
    "FixedTimeout",
    "PhiAccrual",
    "arrivals",
    "beat",
    "judge",
    "odd_ranks",
    "recomputed",
]


class FixedTimeout:
    """A detector that suspects after a fixed time without a heartbeat."""

    def __init__(self, timeout_s: float):
        self._timeout_s = timeout_s

    def beat(self, now_s: float) -> None:
        """Record a heartbeat."""

    def timeout_s(self) -> float:
        """Return the seconds without a heartbeat after which it suspects."""
        return self._timeout_s


class PhiAccrual:
    """A detector that grades the time since the last heartbeat, by phi.

    phi = -log10 P(an interval is longer than the time since the last heartbeat), with
    intervals normal, their mean and deviation those of the last `window`. Phi 1
    suspects a healthy rank at one heartbeat in 10, phi 8 at one in 100 million.

    least_std_s: a floor, without which a very regular network makes every delay
        unusual; Akka has 0.1 s. Cassandra takes intervals as exponential instead.

    Source: Hayashibara et al., The phi Accrual Failure Detector, 2004.
    """

    def __init__(
        self, threshold: float = 8, *, window: int = 100, least_std_s: float = 0.01
    ):
        if not 0 < threshold <= 15:
            raise InvalidArgument(
                f"threshold={threshold}: phi is between 0 and 15; 8 is usual."
            )
        self.threshold, self._least_std_s = threshold, least_std_s
        self._intervals, self._last_s = deque(maxlen=window), None

    def beat(self, now_s: float) -> None:
        """Record a heartbeat."""
        if self._last_s is not None:
            self._intervals.append(now_s - self._last_s)
        self._last_s = now_s

    def _usual(self):
        mean = fmean(self._intervals)
        variance = fmean([(interval - mean) ** 2 for interval in self._intervals])
        return NormalDist(mean, max(math.sqrt(variance), self._least_std_s))

    def phi(self, now_s: float) -> float:
        """Return phi at a time; 0 before the second heartbeat."""
        if not self._intervals:
            return 0.0
        usual = self._usual()
        z = (now_s - self._last_s - usual.mean) / usual.stdev
        later = math.erfc(z / math.sqrt(2)) / 2
        if later > 0:
            return -math.log10(later)
        # Where that is 0 in floating point: the first term of its expansion.
        return (z * z / 2 + math.log(z * math.sqrt(2 * math.pi))) / math.log(10)

    def timeout_s(self) -> float:
        """Return the seconds after which phi reaches the threshold, which adapt."""
        if not self._intervals:
            return math.inf
        usual = self._usual()
        return usual.mean + usual.stdev * -NormalDist().inv_cdf(10**-self.threshold)


def beat(
    comm,
    seconds: float,
    interval_s: float,
    *,
    stops: Mapping[int, float] | None = None,
    jitter: Callable[[random.Random], float] | None = None,
    seed: int = 0,
) -> None:
    """Send heartbeats from every rank to rank 0, which receives them from any.

    stops: rank -> the time in seconds at which it falls silent; it sends a last message
        at the end, so that rank 0 can stop receiving.
    jitter: given a generator, returns the factor on the next interval.

    The trace has the arrival times, see `arrivals`.
    """
    if comm.rank == 0:
        message, left = torch.zeros(1), comm.world_size - 1
        while left:
            comm.recv_any(message)
            left -= int(message)
        return
    draw, now_s = random.Random(f"{seed}, {comm.rank}"), 0.0
    until_s = min((stops or {}).get(comm.rank, seconds), seconds)
    while True:
        wait_s = interval_s * (jitter(draw) if jitter else 1.0)
        if now_s + wait_s > until_s:
            break
        with comm.work("waits", seconds=wait_s):
            pass
        now_s += wait_s
        comm.send(torch.zeros(1), 0)
    with comm.work("silent", seconds=seconds - now_s):
        pass
    comm.send(torch.ones(1), 0)


def arrivals(trace) -> dict[int, list[float]]:
    """Return rank -> arrival times of its heartbeats, in seconds, without the last."""
    found = {rank: [] for rank in range(1, trace.world_size)}
    for event in trace.of(0, "recv"):
        found[event.peer].append(event.end)
    return {rank: times[:-1] for rank, times in found.items()}


class DetectorOutcome(NamedTuple):
    """A detector's errors and delay on a series of heartbeats.

    false_alarms: intervals in which it suspected a rank that was alive.
    detects_s: seconds from the last heartbeat to the suspicion, on average.
    """

    false_alarms: int
    detects_s: float


def judge(detector, times: Iterable[float], *, learn: int = 10) -> DetectorOutcome:
    """Return a detector's `DetectorOutcome` on heartbeats that arrived at these times.

    learn: the number of heartbeats before its judgements count.
    """
    alarms, timeouts, last_s = 0, [], None
    for number, now_s in enumerate(times):
        if number > learn:
            timeouts.append(detector.timeout_s())
            alarms += now_s - last_s > timeouts[-1]
        detector.beat(now_s)
        last_s = now_s
    return DetectorOutcome(alarms, fmean(timeouts))


def odd_ranks(comm, tensors: Sequence[torch.Tensor]) -> list[int]:
    """Return the ranks whose tensors are not, bit for bit, those of the majority.

    Meant for parameters, of which data parallel ranks have equal copies. Where a
    gradient was wrong before the all-reduce, all have the same wrong sum. Where a wrong
    value was passed on, as in a ring's all-gather, the right rank is the odd one.

    Raises: InvalidArgument on every rank if there is no majority, as with 2 ranks.
    Cost: a checksum of each rank to rank 0, and a message back.
    """
    digests = judged_by_rank_0(comm, _digest(tensors), list)
    usual, count = Counter(digests).most_common(1)[0]
    if len(set(digests)) > 1 and 2 * count <= comm.world_size:
        raise InvalidArgument(
            f"{comm.world_size} ranks have {len(set(digests))} different values, and "
            "no value has a majority: it can't be said which one is right."
        )
    return [rank for rank, digest in enumerate(digests) if digest != usual]


def recomputed(
    comm, gradients_of: Callable[[int], Sequence[torch.Tensor]]
) -> list[int]:
    """Return the ranks whose gradients a second rank could not confirm.

    gradients_of: computes a rank's contribution, given its number, from the same
        samples and random numbers; rank r computes its own and those of rank r - 1.

    A rank that computes wrongly disagrees with both neighbours, and is returned. If the
    error does not occur twice, it and the rank that checks it cannot be distinguished,
    and both are returned.
    Cost: forward and backward twice. Done every k-th step it is 1/k of a step.
    """
    n = comm.world_size
    mine, before = (
        _digest(gradients_of(rank % n)) for rank in (comm.rank, comm.rank - 1)
    )
    described = judged_by_rank_0(comm, (mine, before), list)
    apart = [
        (r, (r + 1) % n)
        for r in range(n)
        if described[r][0] != described[(r + 1) % n][1]
    ]
    counts = Counter(rank for pair in apart for rank in pair)
    twice = [rank for rank, count in counts.items() if count > 1]
    return sorted(twice or counts)


def _digest(tensors):
    digest = hashlib.sha256()
    for tensor in tensors:
        raw = tensor.detach().cpu().contiguous().view(-1).view(torch.uint8)
        digest.update(raw.numpy())
    return digest.hexdigest()
