"""`Counterexample`: a schedule that breaks a protocol, shrunk, with its outcome.

search, or fuzz ─▶ steps that are wrong ─▶ shrink ─▶ replay ─▶ `Counterexample`
"""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from distlab.errors import InvalidArgument
from distlab.network.outcome import Outcome
from distlab.network.schedules.properties import Property, StateOutcome, nodes_of
from distlab.network.schedules.replay import replay, verified_replay, why_not
from distlab.network.schedules.schedule import EventSchedule, FaultLimits, ScheduleStep
from distlab.network.schedules.shrinking import playable, shrink
from distlab.network.schedules.state import NodeMemo, State
from distlab.network.schedules.transitions import Transitions

__all__ = ["Counterexample", "Finder", "NotFound"]


@dataclass
class Counterexample:
    """A counterexample: a schedule that breaks the protocol.

    why: what is wrong with its outcome. explored: the extent of the search until then.
    outcome: of the schedule, replayed on real nodes.
    """

    schedule: EventSchedule
    why: str
    explored: Any
    outcome: Outcome
    what: tuple
    seed: Any

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
    """The result of a search without a counterexample. explored: its extent."""

    explored: Any

    def __bool__(self):
        return False

    def __repr__(self):
        return f"Nothing was found. Explored: {self.explored}."


class Finder:
    """A search for a violation: judges states, shrinks schedules and replays them.

    what: (make, nodes, clients). first: the state from which it starts.
    """

    def __init__(
        self, what: tuple, wanted: Property, limits: FaultLimits, seed: Any, settled
    ):
        self.what, self.wanted, self.seed, self.settled = what, wanted, seed, settled
        self.memo = NodeMemo(*what, seed, wanted.monitors)
        self.transitions = Transitions(self.memo, limits, limits.power_losses > 0)
        self._of_past, self._of_nodes = {}, {}

    def begin(self, start: EventSchedule) -> None:
        """Start the nodes, and take the steps of `start`.

        Raises: InvalidArgument for one that does not fit; NodeFailed.
        """
        transitions, self.start = self.transitions, start
        self.first = transitions.first()
        for step in start:
            found = transitions.find(self.first, step)
            if found is None:
                why = why_not(transitions, self.first, step)
                raise InvalidArgument(f"start does not fit: '{step}', but {why}.")
            self.first = transitions.take(self.first, found)
        if self.first.failed:
            raise transitions.failure(self.first)
        self.first = self.first._replace(used=FaultLimits())

    def wrong(self, state: State, end: bool = True) -> str:
        """Return the failure or violation in a state, in words; "" if none.

        end: whether the schedule ends there, so that `check` judges.
        """
        wanted = self.wanted
        if state.failed:
            return str(self.transitions.failure(state))
        if state.broken:
            return self.memo.values[state.broken]
        if wanted.invariant:
            if state.nodes not in self._of_nodes:
                nodes = nodes_of(self.memo, state)
                self._of_nodes[state.nodes] = wanted.of_nodes(nodes)
            if self._of_nodes[state.nodes]:
                return self._of_nodes[state.nodes]
        if wanted.check and end and (not self.settled or _is_settled(state)):
            return self._checked(state)
        return ""

    def _checked(self, state):
        """Return the check's objection, or ""; reuse it for states of equal history."""
        if state.past in self._of_past:
            return self._of_past[state.past]
        outcome = StateOutcome(self.memo, state)
        why = self.wanted.of_outcome(outcome)
        if not outcome.looked:
            self._of_past[state.past] = why
        return why

    def still_wrong(self, steps: Sequence[ScheduleStep]) -> list | None:
        """Return those of the steps that can be played, None if nothing is wrong."""
        taken, state = playable(self.transitions, self.first, steps)
        return taken if self.wrong(state) else None

    def shrunk(self, steps: list[ScheduleStep]) -> list[ScheduleStep]:
        """Return steps that are all needed."""
        return shrink(steps, self.still_wrong)

    def found(self, steps: list[ScheduleStep], explored: Any) -> Counterexample:
        """Return the counterexample of steps that are wrong, replayed on real nodes."""
        taken, state = playable(self.transitions, self.first, steps)
        outcome, schedule = self.verified(taken, state)
        why = self.wrong(state)
        return Counterexample(schedule, why, explored, outcome, self.what, self.seed)

    def verified(self, steps: list, state: State) -> tuple[Outcome, EventSchedule]:
        """Return (outcome, schedule) of steps to a state, played on real nodes, twice.

        Raises: NotDeterministic if they do not come to the same state.
        """
        schedule = EventSchedule([*self.start, *steps])
        about = schedule, self.seed, self.memo, state
        return verified_replay(*self.what, *about), schedule


def _is_settled(state):
    whole = state.sides is None and not state.severed and all(state.nodes)
    return whole and not state.pending and not any(state.syncs)
