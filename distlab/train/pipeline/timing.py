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
_LABEL = re.compile(r"([FBW])(\d+)('*)")


@dataclass(frozen=True)
class Times:
    """Durations of works, in any unit: a number, or one for each stage.

    forward, backward, weights: of a microbatch in a whole stage; where the backward
    pass is not split it takes backward + weights. communication: from a stage to the
    next one or the one before, overlapped with computation.
    """

    forward: float | Sequence[float] = 1.0
    backward: float | Sequence[float] = 1.0
    weights: float | Sequence[float] = 1.0
    communication: float = 0.0

    def of(self, schedule: Schedule, stage: int, kind: str) -> float:
        """Return the duration of a work; a chunk is an equal part of its stage."""
        whole = self.at(stage, kind)
        if kind == "B" and not schedule.splits_backward:
            whole += self.at(stage, "W")
        return whole / schedule.chunks

    def at(self, stage: int, kind: str) -> float:
        """Return the duration of F, B or W in a whole stage, with a split backward."""
        times = getattr(self, _KINDS[kind])
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
            first, last = spans.get(stage, (start, end))
            spans[stage] = min(first, start), max(last, end)
            busy[stage] = busy.get(stage, 0.0) + end - start
        longest = max(last - first for first, last in spans.values())
        return 1 - max(busy.values()) / longest

    @property
    def bubble_to_end(self) -> float:
        """The share of idle time if all stages end with the last, as pictures show it.

        A step that waits for all stages has this bubble, as with gradient clipping.
        """
        busy = sum(end - start for *_, start, end in self.rows)
        return 1 - busy / (len(self.schedule.stages) * self.end)

    def cells(self) -> list[tuple]:
        """Return the cells for `show.pipeline`."""
        return [
            (stage, start, end, _kind(work.kind, work.chunk), work.microbatch)
            for stage, work, start, end in self.rows
        ]


def timed(schedule: Schedule, times: Times = Times()) -> Timed:
    """Return a schedule with the start and end of each work.

    A work starts when the stage has done the one before, and its inputs from other
    stages have arrived.

    Raises: InvalidArgument if the numbers of stages and times differ.
    """
    for each in (times.forward, times.backward, times.weights):
        if isinstance(each, Sequence) and len(each) != len(schedule.stages):
            raise InvalidArgument(
                f"there are {len(schedule.stages)} stages, and times for {len(each)}."
            )
    free, ends, rows = [0.0] * len(schedule.stages), {}, []
    for stage, work in schedule.in_order():
        ready = [
            ends[other, need] + times.communication * (other != stage)
            for other, need in schedule.needs(stage, work)
        ]
        start = max([free[stage], *ready])
        end = start + times.of(schedule, stage, work.kind)
        free[stage] = ends[stage, work] = end
        rows.append((stage, work, start, end))
    return Timed(schedule, rows)


def _kind(letter, chunk):
    return _KINDS[letter] + (f", chunk {chunk}" if chunk else "")


def cells_of(trace: Trace) -> list[tuple]:
    """Return the cells for `show.pipeline` of a schedule that ranks have run.

    Times are in ms since the first work began.
    """
    works = [
        (event.rank, event.start, event.end, word)
        for event in trace.events
        if event.kind == "work" and (word := _LABEL.fullmatch(event.label))
    ]
    zero = min((start for _, start, *_ in works), default=0.0)
    return [
        (rank, 1e3 * (start - zero), 1e3 * (end - zero), _kind(k, len(c)), int(m))
        for rank, start, end, word in works
        for k, m, c in [word.groups()]
        if end is not None
    ]
