"""Exploration of schedules: at random first, then by the number of deviations.

A protocol whose messages are delivered in the order in which they were sent, with one
call after the other, hardly ever fails. Where it fails, it needs a few deviations from
that default order, seldom more than three: a message that comes late, a call in
between, a crash. So after some walks at random the search takes every schedule with one
deviation, then every one with two, and so on. Each runs to its end, so that even the
first ones reach every part of the protocol, as a search that is bounded by length does
not.

A state that was reached before, with as many deviations left, is not explored again. A
small protocol has so few states that all of them can be explored, in any order; this is
tried between two deviations and three.

Source: Emmi, Qadeer and Rakamaric, "Delay-bounded scheduling" (2011).
"""

import random
import time
from collections.abc import Callable

from distlab.network.schedules.state import State
from distlab.network.schedules.successor import POSTPONED
from distlab.network.schedules.transitions import Transitions

__all__ = ["Explorer"]

_WALKS, _WALKS_SHARE = 300, 0.1
_FEW, _ALL_SHARE = 2, 0.5
_MOST_STATES = 3_000_000


class _OutOfTime(Exception):
    """The time for the search is over."""


class _Reached(Exception):
    """The search has reached a wanted state, by the steps in `path`."""


class Explorer:
    """One search.

    wrong: called with a state and whether it ends a schedule; returns what is wrong
    with it, "" if nothing is. tell: called now and then, to show progress.
    steps, runs: the numbers of steps taken, and of schedules run to their end.
    deviations: all schedules with up to so many were explored. complete: whether there
    are no others.
    """

    def __init__(
        self, transitions: Transitions, wrong: Callable, until: float, tell: Callable
    ):
        self.transitions, self.wrong = transitions, wrong
        self.until, self.tell = until, tell
        self.steps = self.runs = self.walks = 0
        self.deviations, self.complete = -1, False
        self.seen = {}
        self.path = []

    def search(self, first: State, seed: int, begun: float) -> list | None:
        """Return the steps to a wanted state, None if none was found."""
        try:
            self._look(first, False)
            walks_until = begun + _WALKS_SHARE * (self.until - begun)
            chance = random.Random(seed)
            while self.walks < _WALKS and time.monotonic() < walks_until:
                self.walks += 1
                self._walk(first, chance)
            self._deepen(first, _FEW)
            self._go_everywhere(first, begun)
            self._deepen(first, self.transitions.limits.steps)
        except _Reached:
            return self.path
        except _OutOfTime:
            pass
        return None

    def _look(self, state, end):
        """Stop the search if a state is a wanted one."""
        if self.wrong(state, end):
            raise _Reached

    def _took(self, step):
        self.path.append(step)
        self.steps += 1
        if not self.steps & 0x3F:
            self.tell(self)
            if time.monotonic() > self.until or len(self.seen) > _MOST_STATES:
                raise _OutOfTime

    def _walk(self, state, chance):
        """Run one random schedule to its end, with some disorder and some faults."""
        self.path = []
        transitions, most = self.transitions, self.transitions.limits.steps
        disorder, trouble = chance.random(), 0.3 * chance.random()
        while True:
            default = transitions.default(state)
            if not default or len(self.path) >= most:
                break
            faults = transitions.faults(state) if chance.random() < trouble else ()
            step = default[0]
            if faults:
                step = chance.choice(faults)
            elif chance.random() < disorder:
                step = chance.choice(default)
                if step[0] == "deliver" and chance.random() < 0.3:
                    state = transitions.postpone(state, step[1])
                    continue
            state = transitions.take(state, step)
            self._took(step)
            self._look(state, False)
        self.runs += 1
        self._look(state, True)

    def _deepen(self, first, most):
        """Explore all schedules with no deviation, with one, and up to `most`."""
        while not self.complete and self.deviations < most:
            self.complete, self.path = True, []
            self._dive(first, self.deviations + 1)
            self.deviations += 1

    def _go_everywhere(self, first, begun):
        """Explore all reachable states, if there is enough time for that."""
        if self.complete:
            return
        until = begun + _ALL_SHARE * (self.until - begun)
        before, self.seen, self.path = self.seen, {hash(first): 0}, []
        stack = [iter(self._all_steps(first))]
        cut = False
        while stack and (self.steps & 0x3F or time.monotonic() < until):
            for state, step in stack[-1]:
                after = self.transitions.take(state, step)
                key = hash(after)
                if key not in self.seen:
                    break
            else:
                stack.pop()
                del self.path[-1:]
                continue
            self.seen[key] = 0
            self._took(step)
            self._look(after, False)
            steps = self._all_steps(after)
            if not steps:
                self.runs += 1
                self._look(after, True)
            elif len(self.path) >= self.transitions.limits.steps:
                steps, cut = [], True
            stack.append(iter(steps))
        self.complete = not stack and not cut
        if not self.complete:
            self.seen = before

    def _all_steps(self, state):
        return [(state, step) for step in self.transitions.all(state)]

    def _dive(self, state, left):
        """Explore all schedules from a state on with up to `left` deviations."""
        transitions, base = self.transitions, len(self.path)
        while True:
            key = hash(state)
            if self.seen.get(key, -1) >= left:
                break
            self.seen[key] = left
            default = transitions.default(state)
            if not default or len(self.path) >= transitions.limits.steps:
                self.runs += 1
                self._look(state, True)
                self.complete = self.complete and not default
                break
            if left:
                for step in default[1:] + transitions.faults(state):
                    self._branch(state, step, left - 1)
                if default[0][0] == "deliver" and len(default) > 1:
                    self._postpone(state, default[0][1], left - 1)
            elif len(default) > 1 or transitions.faults(state):
                self.complete = False
            state = transitions.take(state, default[0])
            self._took(default[0])
            self._look(state, False)
        del self.path[base:]

    def _branch(self, state, step, left):
        state = self.transitions.take(state, step)
        self._took(step)
        self._look(state, False)
        self._dive(state, left)
        self.path.pop()

    def _postpone(self, state, pending, left):
        if pending.round < POSTPONED:
            self._dive(self.transitions.postpone(state, pending), left)
