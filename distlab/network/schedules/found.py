"""What a search gives back: a schedule that breaks a protocol, or what it has seen."""

import html
from dataclasses import dataclass
from typing import Any, NamedTuple

from distlab.network.outcome import Outcome
from distlab.network.schedules.moves import Limits
from distlab.network.schedules.replay import replay
from distlab.network.schedules.schedule import Schedule

__all__ = ["Explored", "Found", "NotFound"]


_FAULTS = (  # as Limits has them
    ("crash", "crashes"),
    ("message lost", "messages lost"),
    ("message doubled", "messages doubled"),
    ("split", "splits"),
)


class Explored(NamedTuple):
    """What a search has gone through.

    walks: schedules at random. schedules: all that were brought to an end. steps:
    taken in all. states: that were gone on from. surprises: up to so many steps out of
    the plain order, all schedules were gone through; -1 if not even the plain one.
    whole: whether there are no others. seconds: how long it took.
    """

    walks: int
    schedules: int
    steps: int
    states: int
    surprises: int
    whole: bool
    limits: Limits
    seconds: float

    @classmethod
    def of(cls, explorer: Any, limits: Limits, seconds: float) -> "Explored":
        """Return what an explorer has gone through."""
        return cls(
            explorer.walks,
            explorer.runs,
            explorer.steps,
            len(explorer.seen),
            explorer.surprises,
            explorer.whole,
            limits,
            seconds,
        )

    def __str__(self):
        told = f"{self.schedules:,} schedules, {self.steps:,} steps, "
        told += f"{self.states:,} states in {self.seconds:.1f} s"
        if self.whole:
            reach = "all schedules there are within the limits"
        elif self.surprises >= 0:
            reach = f"{self.walks:,} at random and all with up to {self.surprises} "
            reach += "steps out of order"
        else:
            reach = f"{self.walks:,} at random"
        return f"{told}: {reach}; {self._faults()} in each"

    def _faults(self):
        names = zip(_FAULTS, self.limits, strict=False)
        told = [
            f"{count} {one if count == 1 else several}"
            for (one, several), count in names
            if count
        ]
        return ", ".join(told) or "no faults"


@dataclass
class Found:
    """A schedule that breaks the protocol, or reaches the goal.

    why: what is wrong with its outcome. explored: what was gone through before.
    outcome: of the schedule, played on real nodes.
    """

    schedule: Schedule
    why: str
    explored: Explored
    outcome: Outcome
    what: tuple
    seed: int

    def __bool__(self):
        return True

    def __repr__(self):
        count = len(self.schedule)
        steps = f"{count} step{'s' * (count != 1)}"
        took = f"{self.explored.seconds:.2f} s"
        return f"Found in {took}, in {steps}: {self.why}\n{self.schedule!r}"

    def _repr_mimebundle_(self, include=None, exclude=None):
        steps = f"<pre>{html.escape(repr(self))}</pre>"
        played = self.outcome._repr_mimebundle_()["text/html"]
        return {"text/html": steps + played, "text/plain": repr(self)}

    def replay(self) -> Outcome:
        """Return the outcome of playing the schedule on new nodes; always the same."""
        return replay(*self.what, self.schedule, seed=self.seed).outcome


@dataclass
class NotFound:
    """Nothing was found; what was `explored`.

    goal: whether it was a goal that was not reached.
    """

    explored: Explored
    goal: bool = False

    def __bool__(self):
        return False

    def __repr__(self):
        what = "The goal was not reached" if self.goal else "Nothing was found"
        return f"{what}. Explored: {self.explored}."
