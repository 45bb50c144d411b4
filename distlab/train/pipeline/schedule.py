"""Pipeline schedules as data: for each stage, its works in order.

    one_f_one_b(stages=4, microbatches=6)

    stage 0   F0 F1 F2 F3 B0 F4 B1 F5 B2 B3 B4 B5
    stage 1   F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 B4 B5
    stage 2   F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 B5
    stage 3   F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5

F is the forward pass of a microbatch, B its backward pass. Where a schedule has W, the
backward pass is split: B is the gradient of the stage's input, for which the stage
before waits, and W that of its weights, for which none waits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from typing import NamedTuple

from distlab.errors import InvalidSchedule

__all__ = ["Schedule", "Work"]

_BEFORE = {"B": "F", "W": "B"}  # the work that the stage itself has to do before
_NAMES = {"F": "forward", "B": "backward", "W": "weight gradient"}
_FROM = {"F": -1, "B": 1}  # offset of the other part of the model that it needs


class Work(NamedTuple):
    """One unit of a stage's work.

    kind: "F", "B" or "W". chunk: index among the stage's chunks of the model; with c
    chunks on each of p stages, chunk k of stage s is part k * p + s of the model.
    """

    kind: str
    microbatch: int
    chunk: int = 0

    def __str__(self):
        return f"{self.kind}{self.microbatch}" + "'" * self.chunk

    def in_words(self) -> str:
        """Return it as messages name it, such as "forward of microbatch 5"."""
        kind = _NAMES.get(self.kind, f"{self.kind!r}")
        chunk = f" in chunk {self.chunk}" if self.chunk else ""
        return f"{kind} of microbatch {self.microbatch}{chunk}"


@dataclass(frozen=True)
class Schedule:
    """The works of each stage in order; `microbatches` and `chunks` are numbers.

    Raises: InvalidSchedule if it cannot be run; see `check`.
    """

    stages: Sequence[Sequence[Work]]
    microbatches: int
    chunks: int = 1

    def __post_init__(self):
        stages = tuple(tuple(Work(*work) for work in stage) for stage in self.stages)
        object.__setattr__(self, "stages", stages)
        self.check()

    def __deepcopy__(self, memo):
        return self  # nothing in it can change

    def __hash__(self):  # not of every work: each rank calls it
        return hash((len(self.stages), self.microbatches, self.chunks))

    def __str__(self):
        rows = [" ".join(map(str, stage)) for stage in self.stages]
        return "\n".join(f"stage {s}   {row}" for s, row in enumerate(rows))

    @cached_property
    def splits_backward(self) -> bool:
        """True if the backward pass is split, into B and W."""
        return any(work.kind == "W" for stage in self.stages for work in stage)

    @property
    def parts(self) -> int:
        """The number of parts of the model."""
        return len(self.stages) * self.chunks

    def part(self, stage: int, work: Work) -> int:
        """Return the index of the part of the model that a stage's work is on."""
        return work.chunk * len(self.stages) + stage

    def needs(self, stage: int, work: Work) -> list[tuple[int, Work]]:
        """Return the works that a work depends on, as (stage, work)."""
        kind, microbatch, own = work
        found = []
        if kind in _BEFORE:
            found.append((stage, Work(_BEFORE[kind], microbatch, own)))
        if kind in _FROM:
            other = own * len(self.stages) + stage + _FROM[kind]
            if 0 <= other < self.parts:
                chunk, stage = divmod(other, len(self.stages))
                found.append((stage, Work(kind, microbatch, chunk)))
        return found

    def in_order(self) -> list[tuple[int, Work]]:
        """Return (stage, work) in the order of time, if all works took equally long.

        Raises: InvalidSchedule for a deadlock.
        """
        return self._in_order

    @cached_property
    def _in_order(self):
        ends, at, order = {}, [0] * len(self.stages), []
        ready = [(0, stage) for stage in range(len(self.stages))]
        asleep = {}  # (stage, work) not done yet -> the stage that waits for it
        while ready:
            now, stage = heappop(ready)
            if at[stage] == len(self.stages[stage]):
                continue
            work = self.stages[stage][at[stage]]
            needs = self.needs(stage, work)
            missing = [need for need in needs if need not in ends]
            if missing:
                asleep[missing[0]] = stage
                continue
            begin = max([now, *(ends[need] for need in needs)])
            if begin > now:
                heappush(ready, (begin, stage))
                continue
            at[stage] += 1
            ends[stage, work] = now + 1
            order.append((stage, work))
            heappush(ready, (now + 1, stage))
            if (stage, work) in asleep:
                heappush(ready, (now + 1, asleep.pop((stage, work))))
        if len(order) < sum(map(len, self.stages)):
            raise InvalidSchedule(self._deadlock(at, ends))
        return order

    def _deadlock(self, at, done):
        described = []
        for stage, works in enumerate(self.stages):
            if at[stage] == len(works):
                continue
            work = works[at[stage]]
            missing = [need for need in self.needs(stage, work) if need not in done]
            other, need = missing[0]
            whose = "its own" if other == stage else f"stage {other}'s"
            described.append(
                f"stage {stage}, at the {work.in_words()}, waits for {whose} "
                f"{need.in_words()}"
            )
        return f"a deadlock: {'; '.join(described)}."

    def held(self, stage: int, kept_for_weights: float = 1) -> list[float]:
        """Return the number of microbatches' activations held, after each work.

        One is held from its F to its last backward: W if there is one, else B.
        kept_for_weights: the fraction of it that is kept from B to W.
        """
        kept = kept_for_weights if self.splits_backward else 0
        changes, count, found = {"F": 1, "B": kept - 1, "W": -kept}, 0, []
        for work in self.stages[stage]:
            count += changes[work.kind]
            found.append(count)
        return found

    def check(self, most_held: int | None = None) -> None:
        """Check that it can be run, holding at most `most_held` activations.

        Raises: InvalidSchedule, naming the stage and the work at fault.
        """
        kinds = "FBW" if self.splits_backward else "FB"
        expected = [
            Work(kind, microbatch, chunk)
            for kind in kinds
            for microbatch in range(self.microbatches)
            for chunk in range(self.chunks)
        ]
        if not self.stages or not expected:
            raise InvalidSchedule("a schedule has a stage and a microbatch at least.")
        for stage, works in enumerate(self.stages):
            self._check_stage(stage, works, set(expected))
        self.in_order()
        for stage, works in enumerate(self.stages):
            for work, held in zip(works, self.held(stage), strict=True):
                if most_held is not None and held > most_held:
                    raise InvalidSchedule(
                        f"stage {stage} holds the activations of {held} microbatches "
                        f"after the {work.in_words()}, and {most_held} is the most."
                    )

    def _check_stage(self, stage, works, expected):
        seen = set()
        for work in works:
            if work not in expected:
                chunks = f" and chunks 0 to {self.chunks - 1}" * (self.chunks > 1)
                raise InvalidSchedule(
                    f"stage {stage} has the {work.in_words()}, and there are "
                    f"microbatches 0 to {self.microbatches - 1}{chunks}."
                )
            if work in seen:
                raise InvalidSchedule(f"stage {stage} has the {work.in_words()} twice.")
            seen.add(work)
            for other, need in self.needs(stage, work):
                if other == stage and need not in seen and need.chunk == work.chunk:
                    raise InvalidSchedule(
                        f"stage {stage} has the {work.in_words()} before the "
                        f"{need.in_words()}."
                    )
        if missing := sorted(expected - seen):
            raise InvalidSchedule(f"stage {stage} lacks the {missing[0].in_words()}.")
