"""Timing of a schedule: start and end of each work, if F, B and W take given times.

timed(one_f_one_b(4, 8), Times(forward=1, backward=2)) ──▶ rows for `show.pipeline`
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from distlab.errors import InvalidArgument
from distlab.trace import Trace
from distlab.train.pipeline.schedule import Schedule, Work

__all__ = ["Timed", "Times", "cells_of", "timed"]


_KINDS = {"F": "forward", "B": "backward", "W": "weights"}
_TIMES = _KINDS | {"FB": "overlapped"}
_LABEL = re.compile(r"([FBW])(\d+)('*)")
_WORKS = re.compile(r"[FBW]\d+'*(\+[BW]\d+'*)*")


@dataclass(frozen=True)
class Times:
    """Durations of works, in any unit: a number, or one for each stage.

    forward, backward, weights: of a microbatch in a whole stage; where the backward
    pass is not split it takes backward + weights. communication: from a stage to the
    next one or the one before, overlapped with computation. overlapped: of a forward
    and a whole backward pass side by side; None for their sum.
    """

    forward: float | Sequence[float] = 1.0
    backward: float | Sequence[float] = 1.0
    weights: float | Sequence[float] = 1.0
    communication: float = 0.0
    overlapped: float | Sequence[float] | None = None

    def of(self, schedule: Schedule, stage: int, *kinds: str) -> float:
        """Return the duration of a work, or of several side by side.

        A chunk is an equal part of its stage.
        """
        whole = sum(self.at(stage, kind) for kind in kinds)
        if "B" in kinds and not schedule.splits_backward:
            whole += self.at(stage, "W")
        if len(kinds) > 1 and self.overlapped is not None:
            whole = self.at(stage, "FB")
        return whole / schedule.chunks

    def at(self, stage: int, kind: str) -> float:
        """Return the duration of F, B or W in a whole stage, with a split backward."""
        times = getattr(self, _TIMES[kind])
        return times[stage] if isinstance(times, Sequence) else times


@dataclass(frozen=True)
class Timed:
    """A schedule in time.

    rows: (stage, work, start, end) in the order of `Schedule.in_order`.
    """

    schedule: Schedule
    rows: list[tuple[int, Work, float, float]]

    @property
    def end(self) -> float:
        """The end of the last work."""
        return max(end for *_, end in self.rows)

    @property
    def bubble(self) -> float:
        """The fraction of the longest span of a stage in which the busiest is idle.

        A stage's span is from its first start to its last end.
        """
        spans, busy = {}, {}
        for stage, _, start, end in self.rows:
            first, last = spans.get(stage, (start, start))
            spans[stage] = first, end
            busy[stage] = busy.get(stage, 0.0) + end - max(start, last)
        longest = max(last - first for first, last in spans.values())
        return 1 - max(busy.values()) / longest

    @property
    def bubble_to_end(self) -> float:
        """The share of idle time if all stages end with the last, as pictures show it.

        A step that waits for all stages has this bubble, as with gradient clipping.
        """
        busy = sum(end - start for _, start, end in {(s, *t) for s, _, *t in self.rows})
        return 1 - busy / (len(self.schedule.stages) * self.end)

    def cells(self) -> list[tuple]:
        """Return the cells for `show.pipeline`; a whole backward beside F is one."""
        ends = {(stage, work): times for stage, work, *times in self.rows}
        return [
            (
                stage,
                *ends[stage, works[0]],
                _kind(work.kind, work.chunk),
                work.microbatch,
            )
            for stage, works in self.schedule.groups_in_order
            for work in works[:2]
        ]


def timed(schedule: Schedule, times: Times = Times()) -> Timed:
    """Return a schedule with the start and end of each work.

    A work starts when the stage has done the one before, and its inputs from other
    stages have arrived; works side by side when those of all of them have.

    Raises: InvalidArgument if the numbers of stages and times differ.
    """
    for each in (getattr(times, name) for name in _TIMES.values()):
        if isinstance(each, Sequence) and len(each) != len(schedule.stages):
            raise InvalidArgument(
                f"there are {len(schedule.stages)} stages, and times for {len(each)}."
            )
    free, ends, rows = [0.0] * len(schedule.stages), {}, []
    for stage, works in schedule.groups_in_order:
        ready = [
            ends[other, need] + times.communication * (other != stage)
            for other, need in schedule.needs(stage, *works)
        ]
        start = max([free[stage], *ready])
        end = start + times.of(schedule, stage, *(work.kind for work in works))
        free[stage] = end
        for work in works:
            ends[stage, work] = end
            rows.append((stage, work, start, end))
    return Timed(schedule, rows)


def _kind(letter, chunk):
    return _KINDS[letter] + (f", chunk {chunk}" if chunk else "")


def cells_of(trace: Trace) -> list[tuple]:
    """Return the cells for `show.pipeline` of a schedule that ranks have run.

    Times are in ms since the first work began.
    """
    works = [
        (event.rank, event.start, event.end, _LABEL.findall(event.label)[:2])
        for event in trace.events
        if event.kind == "work" and _WORKS.fullmatch(event.label)
    ]
    zero = min((start for _, start, *_ in works), default=0.0)
    return [
        (rank, 1e3 * (start - zero), 1e3 * (end - zero), _kind(k, len(c)), int(m))
        for rank, start, end, words in works
        for k, m, c in words
        if end is not None
    ]
