"""Predicted staleness of quorums, from the delays of messages: PBS.

    write   coordinator ── W ──▶ replica ── A ──▶ acknowledged by w replicas: done
                                                       t seconds later
    read    coordinator ── R ──▶ replica ── S ──▶ the newest of the first r responses

Both go to all n replicas. A read is stale if it arrives before the write at each of the
first r replicas that respond. The delays are independent; no message is lost; writes do
not overlap; and there is no other way to a replica, such as read repair.

Source: Bailis, Venkataraman, Franklin, Hellerstein and Stoica, "Probabilistically
bounded staleness for practical partial quorums", VLDB 2012, and its authors' simulator,
github.com/pbailis/pbs-vldb-historical-paper-material.
"""

import math
from dataclasses import dataclass, field
from typing import Any

from distlab.agree.staleness import staleness as measured_staleness
from distlab.errors import InvalidArgument
from distlab.history import History
from distlab.network.client import check_seconds
from distlab.network.delays import (
    DelayDistribution,
    Exponential,
    Mixture,
    Pareto,
    Recorded,
)
from distlab.trace import Trace, words_of
from distlab.units import readable_seconds

__all__ = [
    "CLUSTERS",
    "PredictedStaleness",
    "Wars",
    "compare",
    "k_staleness",
    "measured_wars",
    "reads_after_writes",
    "staleness",
]

_DRAWS_AT_ONCE = 50_000  # of each delay: what stays in a processor's cache


@dataclass(frozen=True)
class Wars:
    """Delays of the four messages between a coordinator and each replica.

    write, acknowledge, read, response: W, A, R, S; one that is None is as the one
    before it.
    remote_s: seconds more for each message between data centers. Every replica is in a
        different one; an operation begins in one of these, drawn at random.
    local: True if the coordinator of an operation is one of the replicas, drawn at
        random, and reaches its own copy without delay.
    """

    write: DelayDistribution
    acknowledge: DelayDistribution | None = None
    read: DelayDistribution | None = None
    response: DelayDistribution | None = None
    remote_s: float = 0.0
    local: bool = False

    def __post_init__(self):
        latest = None
        for name in ("write", "acknowledge", "read", "response"):
            latest = getattr(self, name) or latest
            if not isinstance(latest, DelayDistribution):
                raise InvalidArgument(
                    f"{name}={latest!r} is no distribution of delays. For example: "
                    "Exponential(0.01), from distlab.network.delays"
                )
            object.__setattr__(self, name, latest)
        check_seconds("remote_s", self.remote_s)


# Table 3 of the paper, where times are in ms. It has α = 3.35 for YMMR's writes; their
# simulator has 3.5, which gives the published 89.3 % at t = 0, where 3.35 gives 88.7 %.
_SSD = Mixture((0.9122, Pareto(0.235e-3, 10)), (0.0878, Exponential(1e-3 / 1.66)))
_DISK = Mixture((0.38, Pareto(1.05e-3, 1.51)), (0.62, Exponential(1e-3 / 0.183)))
_YMMR_WRITE = Mixture((0.939, Pareto(3e-3, 3.5)), (0.061, Exponential(1e-3 / 0.0028)))
_YMMR = Mixture((0.982, Pareto(1.5e-3, 3.8)), (0.018, Exponential(1e-3 / 0.0217)))
CLUSTERS = {
    "LNKD-SSD": Wars(_SSD),
    "LNKD-DISK": Wars(_DISK, _SSD),
    "YMMR": Wars(_YMMR_WRITE, _YMMR),
    "WAN": Wars(_DISK, _SSD, remote_s=0.075),
}


@dataclass(frozen=True, eq=False)
class PredictedStaleness:
    """The trials of a prediction, which answer for any time and any percentile.

    probability: of a consistent read `t_s` seconds after the acknowledgement, the time
    that was asked for. reads_s, writes_s: latency of each trial's read and write.
    visible_s: the smallest t at which a trial's read is consistent, in ascending order.
    """

    n: int
    r: int
    w: int
    t_s: Any
    reads_s: Any = field(repr=False)
    writes_s: Any = field(repr=False)
    visible_s: Any = field(repr=False)
    probability: Any = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "probability", self.consistent(self.t_s))

    def __repr__(self) -> str:
        always = " (always: R + W > N)" if self.r + self.w > self.n else ""
        times = self.visible_after_s(), self.read_s(), self.write_s()
        visible, read, write = map(readable_seconds, times)
        return (
            f"N={self.n} R={self.r} W={self.w}: {self.consistent(0):.1%} of reads "
            f"consistent at t = 0{always}, 99.9% from t = {visible} on; 99.9th "
            f"percentiles: read {read}, write {write}"
        )

    def consistent(self, t_s: Any, *, versions: float = 1) -> Any:
        """Return the probability of a consistent read `t_s` seconds after a write.

        t_s: a number, or an array. versions: k, if a read may return any of the latest
        k; then a lower bound, as if they were acknowledged all at once (⟨k, t⟩).
        """
        import numpy

        times = numpy.asarray(t_s, dtype=float)
        if not (times >= 0).all():
            raise InvalidArgument(f"t_s={t_s!r}: seconds after a write are 0 or more.")
        visible = numpy.searchsorted(self.visible_s, times, side="right")
        found = 1 - (1 - visible / len(self.visible_s)) ** versions
        return found if times.ndim else float(found)

    def visible_after_s(self, percent: float = 99.9) -> float:
        """Return the smallest t at which so many percent of reads are consistent."""
        return max(0.0, _percentile(self.visible_s, percent))

    def read_s(self, percent: float = 99.9) -> float:
        """Return a percentile of the latency of reads."""
        return _percentile(self.reads_s, percent)

    def write_s(self, percent: float = 99.9) -> float:
        """Return a percentile of the latency of writes."""
        return _percentile(self.writes_s, percent)


def staleness(
    n: int,
    r: int,
    w: int,
    delays: Wars | str,
    t_s: Any = 0.0,
    *,
    trials: int = 1_000_000,
    seed: int = 0,
) -> PredictedStaleness:
    """Predict latencies and the probability of a consistent read `t_s` after a write.

    n, r, w: replicas; responses a read, and acknowledgements a write waits for. With
    r + w > n every read is consistent, in this model. delays: or a name in `CLUSTERS`.
    t_s: a number of seconds, or an array. trials: of a million, 1000 are beyond the
    99.9th percentile; it moves by 1 to 5 percent with another seed.

    Raises: InvalidArgument.
    Cost: a million trials with n = 3 take half a second, and 24 bytes each.
    """
    import numpy

    _check_quorums(n, r, w)
    delays = CLUSTERS.get(delays, delays) if isinstance(delays, str) else delays
    if not isinstance(delays, Wars):
        raise InvalidArgument(
            f"delays={delays!r} is no Wars, and none of {', '.join(CLUSTERS)}."
        )
    if not isinstance(trials, int) or trials < 1:
        raise InvalidArgument(f"trials={trials!r}: their number is 1 or more.")
    generator = numpy.random.Generator(numpy.random.SFC64(seed))
    found = numpy.empty((3, trials))
    step = max(1, _DRAWS_AT_ONCE // n)
    for start in range(0, trials, step):
        part = found[:, start : start + step]
        part[:] = _trials(generator, (part.shape[1], n), r, w, delays)
    found[2].sort()
    return PredictedStaleness(n, r, w, t_s, *found)


def _trials(generator, size, r, w, delays):
    """Return each trial's latency of a read and a write, and when that is visible."""
    import numpy

    write, back = _both_ways(generator, size, delays, delays.write, delays.acknowledge)
    done = numpy.partition(write + back, w - 1, axis=1)[:, w - 1]
    read, back = _both_ways(generator, size, delays, delays.read, delays.response)
    first = numpy.argpartition(read + back, r - 1, axis=1)[:, :r]
    reads = numpy.take_along_axis(read + back, first, axis=1).max(axis=1)
    # A replica has the write in time if done + t + read >= write.
    late = numpy.take_along_axis(write - read, first, axis=1).min(axis=1)
    return reads, done, late - done


def _both_ways(generator, size, delays, there, back):
    drawn = there.draws(generator, size), back.draws(generator, size)
    if delays.remote_s or delays.local:
        far = generator.integers(size[1], size=(size[0], 1)) != range(size[1])
        for each in drawn:
            each += delays.remote_s * far
            each *= far if delays.local else 1
    return drawn


def k_staleness(n: int, r: int, w: int, k: float = 1) -> float:
    """Return the probability that a read misses all of the latest `k` versions.

    It is for quorums drawn at random, and an upper bound if writes go on to spread.
    With k = 1 + writes of all clients / reads of one client, it is the probability that
    this client reads an older version than before.
    Source: equations 2 and 3 of the paper.
    """
    _check_quorums(n, r, w)
    return (math.comb(n - w, r) / math.comb(n, r)) ** k


def measured_wars(
    trace: Trace,
    kinds: tuple[str, str, str, str] = ("Keep", "CopyStored", "Ask", "Have"),
) -> Wars:
    """Return the delays of a run's messages, for a coordinator that is a replica.

    kinds: the first words of the messages that are W, A, R and S; by default those of
    the `Quorum` store.
    """
    recorded = {kind: [] for kind in kinds}
    for message in trace.messages():
        kind = words_of(message).partition(" ")[0]
        if message.send and message.recv and kind in recorded:
            recorded[kind].append(message.recv.start - message.send.start)
    missing = [kind for kind in kinds if not recorded[kind]]
    if missing:
        raise InvalidArgument(
            f"no message {missing[0]!r} arrived in this run. `kinds` names the first "
            "words of a store's messages, as its trace has them."
        )
    return Wars(*(Recorded(recorded[kind]) for kind in kinds), local=True)


def reads_after_writes(history: History) -> list[tuple[float, bool]]:
    """Return (seconds since the last acknowledged write, consistent?) of each read.

    Reads before the first acknowledged write of their key are left out.
    """
    done, found = {}, []
    for each in history:
        if each.op == "write" and each.outcome == "ok":
            done.setdefault(each.key, []).append(each.end)
    reads = [each for each in history if each.op == "read" and each.outcome == "ok"]
    for read, age_s in zip(reads, measured_staleness(history), strict=True):
        before = [end for end in done.get(read.key, ()) if end <= read.start]
        if before:
            found.append((read.start - max(before), age_s == 0))
    return found


def compare(
    history: History,
    predicted: PredictedStaleness,
    *,
    until_s: float = math.inf,
    bins: int = 10,
) -> list[tuple[float, float, float]]:
    """Return (t_s, share of consistent reads measured, predicted) of each bin.

    The reads until `until_s` after a write are sorted by time into bins of equal size.
    Writes of a key must not overlap.
    """
    import numpy

    reads = sorted(each for each in reads_after_writes(history) if each[0] <= until_s)
    if bins not in range(1, len(reads) + 1):
        raise InvalidArgument(
            f"bins={bins!r}: there are {len(reads)} reads within {until_s} s after a "
            "write, and each bin needs one."
        )
    columns = [part.T for part in numpy.array_split(numpy.array(reads), bins)]
    shares = [(t_s, seen, predicted.consistent(t_s)) for t_s, seen in columns]
    return [tuple(float(each.mean()) for each in share) for share in shares]


def _check_quorums(n, r, w):
    if not isinstance(n, int) or n < 1:
        raise InvalidArgument(f"n={n!r}: the number of replicas is 1 or more.")
    for name, count in (("r", r), ("w", w)):
        if count not in range(1, n + 1):
            raise InvalidArgument(f"{name}={count!r}: a quorum of {n} is 1 to {n}.")


def _percentile(values, percent):
    import numpy

    return float(numpy.percentile(values, percent))
