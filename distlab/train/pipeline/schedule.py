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

from collections.abc import Sequence, Set
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

    kind: "F", "B" or "W". chunk: index among the stage's chunks of the model.
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

    With p stages, chunk k of stage s is part k * p + s of the model. v_shaped: odd
    chunks go back from the last stage to the first one: part (k + 1) * p - 1 - s.
    overlapped: (stage, F) of each forward work that runs side by side with the backward
    pass behind it in the row, B or B and its W: begun and ended together.

    Raises: InvalidSchedule if it cannot be run; see `check`.
    """

    stages: Sequence[Sequence[Work]]
    microbatches: int
    chunks: int = 1
    v_shaped: bool = False
    overlapped: Set[tuple[int, Work]] = frozenset()

    def __post_init__(self):
        stages = tuple(tuple(Work(*work) for work in stage) for stage in self.stages)
        overlapped = frozenset((stage, Work(*work)) for stage, work in self.overlapped)
        object.__setattr__(self, "stages", stages)
        object.__setattr__(self, "overlapped", overlapped)
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

    def part(self, stage: int, chunk: int) -> int:
        """Return the index of the part of the model that is a stage's chunk."""
        back = self.v_shaped and chunk % 2
        return chunk * len(self.stages) + (
            len(self.stages) - 1 - stage if back else stage
        )

    def place(self, part: int) -> tuple[int, int]:
        """Return the stage and the chunk that a part of the model is."""
        chunk, stage = divmod(part, len(self.stages))
        return self.part(stage, chunk) % len(self.stages), chunk

    def chunks_of(self, stage: int, parts: Sequence) -> list:
        """Return a stage's chunks among all parts of the model."""
        return [parts[self.part(stage, chunk)] for chunk in range(self.chunks)]

    @cached_property
    def groups(self) -> list[list[tuple[Work, ...]]]:
        """The works of each stage, as tuples of those that run side by side."""
        length = 3 if self.splits_backward else 2
        found = []
        for stage, works in enumerate(self.stages):
            groups, left = [], list(works)
            while left:
                size = length if (stage, left[0]) in self.overlapped else 1
                groups.append(tuple(left[:size]))
                del left[:size]
            found.append(groups)
        return found

    def needs(self, stage: int, *works: Work) -> list[tuple[int, Work]]:
        """Return the works on which works that begin together depend: (stage, work)."""
        found = [need for work in works for need in self._needs(stage, work)]
        return [need for need in found if need[0] != stage or need[1] not in works]

    def _needs(self, stage, work):
        kind, microbatch, own = work
        found = []
        if kind in _BEFORE:
            found.append((stage, Work(_BEFORE[kind], microbatch, own)))
        if kind in _FROM:
            other = self.part(stage, own) + _FROM[kind]
            if 0 <= other < self.parts:
                stage, chunk = self.place(other)
                found.append((stage, Work(kind, microbatch, chunk)))
        return found

    def in_order(self) -> list[tuple[int, Work]]:
        """Return (stage, work) in the order of time, if all works took equally long.

        Raises: InvalidSchedule for a deadlock.
        """
        return [
            (stage, work) for stage, works in self.groups_in_order for work in works
        ]

    @cached_property
    def groups_in_order(self) -> list[tuple[int, tuple[Work, ...]]]:
        """The stages and `groups`, in the order of `in_order`."""
        ends, at, order = {}, [0] * len(self.stages), []
        ready = [(0, stage) for stage in range(len(self.stages))]
        asleep = {}  # (stage, work) not done yet -> the stage that waits for it
        while ready:
            now, stage = heappop(ready)
            if at[stage] == len(self.groups[stage]):
                continue
            works = self.groups[stage][at[stage]]
            needs = self.needs(stage, *works)
            missing = [need for need in needs if need not in ends]
            if missing:
                asleep[missing[0]] = stage
                continue
            begin = max([now, *(ends[need] for need in needs)])
            if begin > now:
                heappush(ready, (begin, stage))
                continue
            at[stage] += 1
            order.append((stage, works))
            heappush(ready, (now + 1, stage))
            for done in ((stage, work) for work in works):
                ends[done] = now + 1
                if done in asleep:
                    heappush(ready, (now + 1, asleep.pop(done)))
        if len(order) < sum(map(len, self.groups)):
            raise InvalidSchedule(self._deadlock(at, ends))
        return order

    def _deadlock(self, at, done):
        described = []
        for stage, groups in enumerate(self.groups):
            if at[stage] == len(groups):
                continue
            work, *beside = groups[at[stage]]
            needs = self.needs(stage, work, *beside)
            other, need = next(need for need in needs if need not in done)
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
        self._check_overlapped()
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

    def _check_overlapped(self):
        every = {(stage, work) for stage, row in enumerate(self.stages) for work in row}
        for stage, work in self.overlapped:
            if (stage, work) not in every or work.kind != "F":
                raise InvalidSchedule(
                    f"overlapped has stage {stage}'s {work.in_words()}; it takes "
                    "(stage, work) of forward works in the schedule."
                )
        for stage, groups in enumerate(self.groups):
            for work, *backward in groups:
                kinds = [each.kind for each in backward]
                one = {each[1:] for each in backward} - {work[1:]}
                whole = len(one) == 1 and kinds in (["B"], ["B", "W"])
                if (stage, work) in self.overlapped and not whole:
                    raise InvalidSchedule(
                        f"stage {stage} overlaps the {work.in_words()}, and the whole "
                        "backward pass of another microbatch does not follow it."
                    )
