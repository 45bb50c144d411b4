"""The search itself: walks at random, then everything that is a little out of order.

A protocol whose messages come in the order in which they were sent, with one call after
the other, hardly ever fails. Where it fails, it needs a few surprises, seldom more than
three: a message that comes late, a call in between, a crash. So after some walks at
random the search takes every schedule with one surprise, then every one with two, and
so on. Each goes on to its end, so that even the first ones reach every part of the
protocol, as a search that is bounded by length does not.

A state that was reached before, with as many surprises left, is not gone through again.
A small protocol has so few states that they can all be gone through, in any order; this
is tried between two surprises and three.

Source: Emmi, Qadeer and Rakamaric, "Delay-bounded scheduling" (2011).
"""

import random
import time
from collections.abc import Callable

from distlab.network.schedules.draft import ASIDE
from distlab.network.schedules.moves import Moves
from distlab.network.schedules.states import State

__all__ = ["Explorer", "OutOfTime"]

_WALKS, _WALKS_SHARE = 300, 0.1
_FEW, _ALL_SHARE = 2, 0.5
_MOST_STATES = 3_000_000


class OutOfTime(Exception):
    """The time for the search is over."""


class Reached(Exception):
    """A state that is looked for has been reached; how, is in `path`."""


class Explorer:
    """One search.

    wrong: says why a state is one that is looked for, if so; called with the state and
    whether it is the end of a schedule.
    steps, runs: how many steps were taken, and schedules brought to their end.
    surprises: up to so many all schedules were gone through. whole: whether there are
    no others.
    """

    def __init__(self, moves: Moves, wrong: Callable, until: float, tell: Callable):
        self.moves, self.wrong, self.until, self.tell = moves, wrong, until, tell
        self.steps = self.runs = self.walks = 0
        self.surprises, self.whole = -1, False
        self.seen = {}
        self.path = []

    def search(self, first: State, seed: int, begun: float) -> list | None:
        """Return the steps to a state that is looked for, None if none was found."""
        try:
            self._look(first, False)
            walks_until = begun + _WALKS_SHARE * (self.until - begun)
            chance = random.Random(seed)
            while self.walks < _WALKS and time.monotonic() < walks_until:
                self.walks += 1
                self._walk(first, chance)
            self._deepen(first, _FEW)
            self._go_everywhere(first, begun)
            self._deepen(first, self.moves.limits.steps)
        except Reached:
            return self.path
        except OutOfTime:
            pass
        return None

    def _look(self, state, end):
        """Stop the search if a state is looked for."""
        if self.wrong(state, end):
            raise Reached

    def _took(self, step):
        self.path.append(step)
        self.steps += 1
        if not self.steps & 0x3F:
            self.tell(self)
            if time.monotonic() > self.until or len(self.seen) > _MOST_STATES:
                raise OutOfTime

    def _walk(self, state, chance):
        """Go to the end at random, in an order that is more or less the plain one."""
        self.path = []
        moves, most = self.moves, self.moves.limits.steps
        disorder, trouble = chance.random(), 0.3 * chance.random()
        while True:
            plain = moves.plain(state)
            if not plain or len(self.path) >= most:
                break
            others = moves.others(state) if chance.random() < trouble else ()
            step = plain[0]
            if others:
                step = chance.choice(others)
            elif chance.random() < disorder:
                step = chance.choice(plain)
                if step[0] == "get" and chance.random() < 0.3:
                    state = moves.aside(state, step[1])
                    continue
            state = moves.take(state, step)
            self._took(step)
            self._look(state, False)
        self.runs += 1
        self._look(state, True)

    def _deepen(self, first, most):
        """Go through all schedules with no surprise, with one, and up to `most`."""
        while not self.whole and self.surprises < most:
            self.whole, self.path = True, []
            self._dive(first, self.surprises + 1)
            self.surprises += 1

    def _go_everywhere(self, first, begun):
        """Go through all states there are, if there is enough time for that."""
        if self.whole:
            return
        until = begun + _ALL_SHARE * (self.until - begun)
        before, self.seen, self.path = self.seen, {hash(first): 0}, []
        stack = [iter(self._all_steps(first))]
        cut = False
        while stack and (self.steps & 0x3F or time.monotonic() < until):
            for state, step in stack[-1]:
                after = self.moves.take(state, step)
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
            elif len(self.path) >= self.moves.limits.steps:
                steps, cut = [], True
            stack.append(iter(steps))
        self.whole = not stack and not cut
        if not self.whole:
            self.seen = before

    def _all_steps(self, state):
        steps = self.moves.plain(state) + self.moves.others(state)
        return [(state, step) for step in steps]

    def _dive(self, state, left):
        """Go through all schedules from a state on with so many surprises."""
        moves, most, base = self.moves, self.moves.limits.steps, len(self.path)
        while True:
            key = hash(state)
            if self.seen.get(key, -1) >= left:
                break
            self.seen[key] = left
            plain = moves.plain(state)
            if not plain or len(self.path) >= most:
                self.runs += 1
                self._look(state, True)
                self.whole = self.whole and not plain
                break
            if left:
                for step in plain[1:] + moves.others(state):
                    self._branch(state, step, left - 1)
                if plain[0][0] == "get" and len(plain) > 1:
                    self._put_aside(state, plain[0][1], left - 1)
            elif len(plain) > 1 or moves.others(state):
                self.whole = False
            state = moves.take(state, plain[0])
            self._took(plain[0])
            self._look(state, False)
        del self.path[base:]

    def _branch(self, state, step, left):
        state = self.moves.take(state, step)
        self._took(step)
        self._look(state, False)
        self._dive(state, left)
        self.path.pop()

    def _put_aside(self, state, pending, left):
        if pending.round < ASIDE:
            self._dive(self.moves.aside(state, pending), left)
