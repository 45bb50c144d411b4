"""Shrinking: a schedule without unnecessary steps, or the shortest there is.

    shrink      leaves out steps as long as the rest still fails (delta debugging)
    shortest    looks for a shorter schedule, breadth first

Leaving out a step can make others impossible, such as the delivery of a message that
was never sent. Those are skipped, so the remaining steps can always be played.

Source: Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input"
(2002).
"""

import time
from collections.abc import Callable, Sequence

from distlab.network.schedules.schedule import ScheduleStep
from distlab.network.schedules.state import State
from distlab.network.schedules.transitions import Transitions

__all__ = ["playable", "shortest", "shrink"]

_MOST_STATES = 300_000
_SHRUNK_FIRST = (  # all steps of one kind at once, before others one by one
    "clock",
    "drop",
    "duplicate",
    "split",
    "cut",
    "disk_loss",
    "power_loss",
    "crash",
    "time_out",
    "timer",
)


def playable(
    transitions: Transitions, first: State, steps: Sequence[ScheduleStep]
) -> tuple[list, State]:
    """Return (the steps that can be played, one after another; the final state).

    Without an earlier step a message may have other content: it stands in for the one
    that would have been sent.
    """
    state, taken = first, []
    for step in steps:
        found = transitions.find(state, step)
        if found is None and (found := transitions.find_similar(state, step)):
            step = transitions.in_words(state, found)
        if found is not None:
            state = transitions.take(state, found)
            taken.append(step)
        if state.failed or state.broken:
            break
    return taken, state


def shrink(steps: list[ScheduleStep], still: Callable) -> list[ScheduleStep]:
    """Return a minimal subset of the steps that still fails: each step is needed.

    still: returns the playable steps of a candidate if they still fail, else None.
    """
    for kind in _SHRUNK_FIRST:
        fewer = [step for step in steps if step.kind != kind]
        if len(fewer) < len(steps):
            steps = still(fewer) or steps
    size = max(len(steps) // 2, 1)
    while steps:
        before, end = len(steps), len(steps)
        while end > 0:  # from the end, as what precedes it is played already
            begin = max(end - size, 0)
            steps = still(steps[:begin] + steps[end:]) or steps
            end = begin
        if size == 1 and len(steps) == before:
            break
        size = max(size // 2, 1)
    return steps


def shortest(
    transitions: Transitions, first: State, wrong: Callable, length: int, until: float
) -> list[ScheduleStep] | None:
    """Return the shortest steps to a wanted state, below this length.

    wrong: returns what is wrong with a state. None if none is found in time.
    """
    seen, level = {hash(first)}, [(first, None)]
    for _ in range(length - 1):
        following = []
        for entry in level:
            state = entry[0]
            for step in transitions.all(state):
                after = transitions.take(state, step)
                key = hash(after)
                if key in seen:
                    continue
                seen.add(key)
                way = (after, (entry, step))
                if wrong(after):
                    return _steps_to(transitions, way)
                following.append(way)
            if time.monotonic() > until or len(seen) > _MOST_STATES:
                return None
        level = following
    return None


def _steps_to(transitions, way):
    """Return the steps that led to a state, in words, from the first on."""
    steps = []
    while way[1] is not None:
        before, step = way[1]
        steps.append(transitions.in_words(before[0], step))
        way = before
    return steps[::-1]
