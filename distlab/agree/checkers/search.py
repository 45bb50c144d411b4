"""The search for an order of operations that explains every answer.

    calls and returns in the order of time, as a list:   c0  c1  r0  c2  r1  r2
    whatever is called before the first return may come first:  0 or 1
    take one out, and the same question is left about a shorter list

This is Wing and Gong's search, with Lowe's memory of where it has been: what was taken
out and the state it left are enough to know what is left to do, so that no such pair is
tried twice. Two things make it faster here. An answer that changes nothing and fits the
state is taken at once, for taking it closes no way. And of two ways to the same place
the one that has spent fewer operations of unknown outcome is as good as the other,
since nobody has to spend them.

Source: Wing and Gong, Testing and verifying concurrent objects, 1993; Lowe, Testing for
linearizability, 2017, sections 2 to 4; in this form in Porcupine.
"""

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from distlab.agree.checkers.forced import Forced
from distlab.agree.models import ANY, Model
from distlab.trace import Operation

__all__ = ["Found", "find_order", "is_new"]

_LOOK_AT_CLOCK = 512  # steps between two looks
_LONG = 5000  # steps after which it is worth looking at what the values alone say


@dataclass(frozen=True)
class Found:
    """How a search ended.

    order: the operations in an order that explains all, or None.
    in_time: whether it came to an end; if not, nothing is known.
    stuck_s: the latest end of an operation that no order gets past, if there is none.
    """

    order: list[Operation] | None
    in_time: bool = True
    stuck_s: float | None = None

    @property
    def refuted(self) -> bool:
        """Whether there is certainly no order."""
        return self.order is None and self.in_time


def find_order(
    operations: Sequence[Operation],
    model: Model,
    deadline: float,
    optional: Collection[int] = (),
) -> Found:
    """Return an order of the operations that explains them, if there is one.

    operations: of one key, in the order of their starts, none refused. deadline: when
    to give up, as time.monotonic() has it. optional: the numbers of operations that may
    also be left out, though they have an end.
    """
    return _Search(operations, model, optional).run(deadline)


class _Search:
    """One search. Calls are entries 2 i, returns 2 i + 1, of the operation number i.

    Invariants: the list from `next[HEAD]` on holds what has not been taken out; `done`
    has a bit for every operation that was and has an end, `spent` for every other.
    """

    def __init__(self, operations, model, optional):
        self.operations = operations
        self.model = model
        self.optional = optional
        self.asked = [_asked(operation, model) for operation in operations]
        self.open = [operation.end is None for operation in operations]
        self.left = self.open.count(False)
        self.after, self.twin = _constraints(operations)
        entries = [(o.start, 0, 2 * i) for i, o in enumerate(operations)]
        entries += [
            (o.end, 1, 2 * i + 1) for i, o in enumerate(operations) if o.end is not None
        ]
        line = [entry for *_, entry in sorted(entries)]
        self.head = 2 * len(operations)
        self.end = self.head + 1
        self.next = [self.end] * (self.head + 2)
        self.previous = [self.head] * (self.head + 2)
        for one, two in zip([self.head, *line], [*line, self.end], strict=True):
            self.next[one], self.previous[two] = two, one

    def run(self, deadline):
        """Search, and return how it ended."""
        state, done, spent = self.model.initial, 0, 0
        seen = {(done, state): [spent]}
        trail = []  # of (operation, state, done, spent before it; None: no choice)
        stuck, steps = -1.0, 0
        state, done = self._settle(state, done, trail)
        entry = self.next[self.head]
        while self.left:
            steps += 1
            if steps % _LOOK_AT_CLOCK == 0 and time.monotonic() > deadline:
                return Found(None, in_time=False)
            if steps == _LONG and self._cannot_be():
                return Found(None, stuck_s=float("inf"))
            if entry & 1:  # a return, or the end: what comes first was called before it
                number = entry >> 1
                if number in self.optional:
                    now = done | 1 << number
                    if is_new(seen, (now, state), spent):
                        trail.append((number, None, None, None))
                        self._take_out(number)
                        state, done = self._settle(state, now, trail)
                        entry = self.next[self.head]
                        continue
                elif entry != self.end:
                    stuck = max(stuck, self.operations[entry >> 1].end)
                while trail and trail[-1][1] is None:
                    self._put_back(trail.pop()[0])
                if not trail:
                    return Found(None, stuck_s=stuck)
                number, state, done, spent = trail.pop()
                self._put_back(number)
                entry = self.next[2 * number]
                continue
            number = entry >> 1
            after = self._step(state, number, done, spent)
            if after is not None:
                bit = 1 << number
                now = (done, spent | bit) if self.open[number] else (done | bit, spent)
                if is_new(seen, (now[0], after), now[1]):
                    trail.append((number, state, done, spent))
                    self._take_out(number)
                    done, spent = now
                    state, done = self._settle(after, done, trail)
                    entry = self.next[self.head]
                    continue
            entry = self.next[entry]
        return Found([self.operations[number] for number, *_ in trail])

    def _cannot_be(self):
        """Return whether the values alone forbid any order, each given once."""
        operations = [
            o._replace(end=None, outcome="unknown") if i in self.optional else o
            for i, o in enumerate(self.operations)
        ]
        return Forced(operations, self.model, timed=True).refuted

    def _step(self, state, number, done, spent):
        """Return the state after an operation, or None if it cannot come now."""
        if self.after[number] & ~done:
            return None
        twin = self.twin[number]
        if twin is not None and not spent >> twin & 1:
            return None
        op, value, result, _ = self.asked[number]
        after = self.model.step(state, op, value, result)
        needless = after == state and (self.open[number] or number in self.optional)
        return None if needless else after

    def _settle(self, state, done, trail):
        """Take out every answer that fits the state and changes nothing."""
        entry = self.next[self.head]
        while not entry & 1:
            number = entry >> 1
            entry = self.next[entry]
            op, value, result, observes = self.asked[number]
            if observes and not self.after[number] & ~done:
                fits = self.model.step(state, op, value, result) is not None
                if fits:
                    trail.append((number, None, None, None))
                    if entry == 2 * number + 1:
                        entry = self.next[entry]
                    self._take_out(number)
                    done |= 1 << number
        return state, done

    def _take_out(self, number):
        for entry in (2 * number, 2 * number + 1):
            if entry & 1 and self.open[number]:
                continue
            before, after = self.previous[entry], self.next[entry]
            self.next[before], self.previous[after] = after, before
        self.left -= not self.open[number]

    def _put_back(self, number):
        for entry in (2 * number + 1, 2 * number):
            if entry & 1 and self.open[number]:
                continue
            before, after = self.previous[entry], self.next[entry]
            self.next[before] = self.previous[after] = entry
        self.left += not self.open[number]


def _asked(operation, model):
    """Return what step is called with, and whether this changes nothing at all."""
    result = ANY if operation.end is None else operation.result
    observes = operation.end is not None and model.observes(operation.op, result)
    return operation.op, operation.value, result, observes


def _constraints(operations):
    """Return what must come before each operation, beside what time says.

    after: the call before by the same client, as a bit, where it was answered at the
    very moment of this call: time alone leaves open which comes first.
    twin: the operation of unknown outcome that asked the same and was called before:
    it is as good as this one, and is spent first.
    """
    after, twins, last, same = [], [], {}, {}
    for number, operation in enumerate(operations):
        before = last.get(operation.client)
        close = before is not None and operations[before].end == operation.start
        after.append(1 << before if close else 0)
        asked = operation.op, operation.value
        twins.append(same.get(asked) if operation.end is None else None)
        if operation.end is not None:
            last[operation.client] = number
        elif not close:
            same[asked] = number
    return after, twins


def is_new(seen: dict[object, list[int]], place: object, spent: int) -> bool:
    """Note that a place was reached, unless it was at no greater expense."""
    costs = seen.setdefault(place, [])
    if any(cost & spent == cost for cost in costs):
        return False
    costs[:] = [cost for cost in costs if cost & spent != spent]
    costs.append(spent)
    return True
