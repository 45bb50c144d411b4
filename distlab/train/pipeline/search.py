"""Searches: for a schedule with the smallest bubble, and for an even cut of a model.

Source: Qi et al., Zero Bubble Pipeline Parallelism (2024), section 3: a greedy
heuristic with a grid search over its few parameters.
"""

import math
from collections.abc import Sequence
from itertools import product

from distlab.errors import InvalidArgument
from distlab.train.pipeline.schedule import Schedule, Work
from distlab.train.pipeline.timing import Times, timed

__all__ = ["balanced", "zero_bubble_search"]


def zero_bubble_search(
    stages: int,
    microbatches: int,
    times: Times,
    *,
    most_held: int,
    kept_for_weights: float,
) -> Schedule:
    """Return the schedule with the smallest bubble that the heuristic finds.

    most_held: the most microbatches whose activations a stage may hold. Each stage does
    next the work that can begin first. The lead by which F or W has to begin before B,
    and the number of F before the first B, are searched.
    kept_for_weights: the fraction of them that is kept from B to W, 0 to 1; see
    `cost.kept_for_weights`.

    Raises: InvalidArgument for a most_held below 1, or a fraction that is none.
    """
    if most_held < 1:
        raise InvalidArgument(f"a stage holds 1 microbatch or more, not {most_held}.")
    if not 0 <= kept_for_weights <= 1:
        raise InvalidArgument(
            f"kept_for_weights is a fraction from 0 to 1, and got {kept_for_weights!r}."
            " For a transformer: cost.kept_for_weights(length, width, heads)."
        )
    step = max(_mean(times.forward), _mean(times.backward), _mean(times.weights))
    leads = [0.0, 0.25 * step, 0.5 * step, step, 2 * step]
    ahead = [lambda s, a=a: a * (stages - s) for a in (1, 1.5, 2, most_held)]
    found = [
        _Greedy(
            stages, microbatches, times, (most_held, kept_for_weights), plan, leading
        ).schedule()
        for plan, *leading in product(ahead, leads, leads)
    ]
    return min(found, key=lambda schedule: timed(schedule, times).bubble)


class _Greedy:
    """The greedy heuristic: the stage that can begin a work first does it."""

    def __init__(self, stages, microbatches, times, memory, ahead, leads):
        self._p, self._m, self._times = stages, microbatches, times
        self._limit, self._kept = memory
        self._most = [max(1, min(self._limit, int(ahead(s)))) for s in range(stages)]
        self._leads = dict(zip("FWB", [*leads, 0.0], strict=True))
        self._done = [{"F": 0, "B": 0, "W": 0} for _ in range(stages)]
        self._free = [0.0] * stages
        self._works = [[] for _ in range(stages)]
        # (stage, kind) -> arrival times of its inputs, by microbatch; F before B
        self._there = {(0, "F"): [0.0] * microbatches}
        for stage in range(stages):
            self._there.setdefault((stage, "F"), [])
            self._there[stage, "B"] = []

    def schedule(self):
        """Return the schedule of all works."""
        choices = {stage: self._next(stage) for stage in range(self._p)}
        while open_ := [choice for choice in choices.values() if choice]:
            _, stage, _ = choice = min(open_)
            self._do(*choice)
            for other in {stage - 1, stage, stage + 1} & choices.keys():
                choices[other] = self._next(other)
        return Schedule(self._works, self._m)

    def _next(self, stage):
        """Return (begin, stage, kind) of a stage's next work, or None."""
        done, free = self._done[stage], self._free[stage]
        held = done["F"] - done["B"] + self._kept * (done["B"] - done["W"])
        most = self._most[stage] if done["B"] == 0 else self._limit
        can = {}
        if done["F"] < self._m and held + 1 <= most + 1e-9:
            can["F"] = self._ready(stage, "F")
        if done["B"] < done["F"]:
            can["B"] = self._ready(stage, "B")
        if done["W"] < done["B"]:
            can["W"] = free
        begins = {k: max(free, at) for k, at in can.items() if at < math.inf}
        if not begins:
            return None
        kind = min(begins, key=lambda k: (begins[k] + self._leads[k], "BFW".index(k)))
        return begins[kind], stage, kind

    def _ready(self, stage, kind):
        there, number = self._there[stage, kind], self._done[stage][kind]
        return there[number] if number < len(there) else math.inf

    def _do(self, begin, stage, kind):
        number = self._done[stage][kind]
        end = begin + self._times.at(stage, kind)
        self._free[stage] = end
        self._done[stage][kind] += 1
        self._works[stage].append(Work(kind, number))
        arrives = end + self._times.communication
        if kind == "F" and stage < self._p - 1:
            self._there[stage + 1, "F"].append(arrives)
        elif kind == "F":
            self._there[stage, "B"].append(end)
        elif kind == "B" and stage:
            self._there[stage - 1, "B"].append(arrives)


def balanced(seconds: Sequence[float], stages: int) -> list[int]:
    """Return the number of layers of each stage that makes the slowest stage fastest.

    seconds: duration of each layer, in order; a stage gets consecutive layers.

    Raises: InvalidArgument if there are fewer layers than stages.
    """
    if len(seconds) < stages:
        raise InvalidArgument(f"{len(seconds)} layers do not make {stages} stages.")
    best = {(0, 0): (0.0, [])}  # (layers, stages) -> the slowest stage, and the counts
    for stage in range(1, stages + 1):
        for end in range(stage, len(seconds) + 1):
            best[end, stage] = min(
                (max(slowest, sum(seconds[begin:end])), [*counts, end - begin])
                for begin in range(stage - 1, end)
                if (begin, stage - 1) in best
                for slowest, counts in [best[begin, stage - 1]]
            )
    return best[len(seconds), stages][1]


def _mean(times):
    return sum(times) / len(times) if isinstance(times, Sequence) else times
