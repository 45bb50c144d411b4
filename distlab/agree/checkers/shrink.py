"""The smallest sub-history that a checker refutes, as a counterexample.

Operations are left out as long as the rest contradicts the model (delta debugging). Two
rules keep it sound. An operation that found a value goes with one that wrote it: a read
of 1 without any write of 1 would be a contradiction made by the shrinking. And an
operation left out may have taken effect in its time, or not: if that explained the
rest, the rest would accuse a correct store.

Guarantee: the result is refuted, also together with all other operations, whether or
not they took effect; and if the time was enough, none of it can be left out any more.
"""

import time
from collections.abc import Callable, Collection, Sequence

from distlab.agree.checkers.preconditions import after_of, given_by
from distlab.agree.sequential_specifications import ANY, Model
from distlab.trace import Operation

__all__ = ["EXPLAINING", "perhaps", "shrink"]

EXPLAINING = 0.25  # of a check's time limit: the additional time for shrinking

Refuted = Callable[[list[Operation], Collection[int], float], bool]

_EACH = 0.1  # of the time: the most that one call of `refuted` may take


def shrink(
    operations: Sequence[Operation],
    refuted: Refuted,
    model: Model,
    deadline: float,
    until_s: float | None = None,
) -> list[Operation]:
    """Return a few of the operations that are refuted already without the others.

    operations: refuted as they are, and sorted by start. refuted: returns True if
    surely no order explains the given operations, of which some, by their numbers, may
    or may not have taken effect; False when its time is over. until_s: if time counts,
    the response that no order gets past.
    """
    return _Shrinking(operations, refuted, model, deadline).found(until_s)


def perhaps(
    operations: Sequence[Operation], optional: Collection[int]
) -> list[Operation]:
    """Return the operations, those whose numbers are optional with unknown outcome."""
    return [
        o._replace(end=None, outcome="unknown") if number in optional else o
        for number, o in enumerate(operations)
    ]


class _Shrinking:
    def __init__(self, operations, refuted, model, deadline):
        self.operations, self.model = list(operations), model
        self.refuted, self.deadline = refuted, deadline
        self.each = max(0.0, _EACH * (deadline - time.monotonic()))
        self.gives = [given_by(operation, model) for operation in operations]
        given = {value for values in self.gives for value in values}
        self.needs = [self._needed(o, given) for o in operations]

    def found(self, until_s):
        everything = range(len(self.operations))
        self.timed = until_s is not None
        early = everything
        if self.timed:
            early = [i for i in everything if self.operations[i].start <= until_s]
        kept = self._shrunk(self._window(early) or everything, self._plain)
        if not self._honest(kept):
            kept = self._shrunk(everything, self._honest)
        return [self.operations[number] for number in kept]

    def _needed(self, operation, given):
        """Return the values that another operation must have written for it."""
        fresh = after_of(operation, self.model.initial, self.model)
        if operation.end is None or fresh is not None:
            return ()
        found = self.model.finds(operation.op, operation.value, operation.result)
        return tuple(value for value in found if value in given)

    def _plain(self, kept):
        return self._asked([self.operations[number] for number in kept], ())

    def _honest(self, kept):
        """Return True if `kept` is refuted whether or not the others took effect."""
        if not self._plain(kept):
            return False
        kept = set(kept)
        ends = [self.operations[number].end for number in kept]
        last = max((end for end in ends if end is not None), default=0)
        judged, optional = [], set()
        for number, operation in enumerate(self.operations):
            if number not in kept:
                late = self.timed and operation.start > last
                if late or not self._may_matter(operation):
                    continue
                optional.add(len(judged))
            judged.append(operation)
        return self._asked(judged, optional)

    def _asked(self, operations, optional):
        until = min(self.deadline, time.monotonic() + self.each)
        return self.refuted(operations, optional, until)

    def _may_matter(self, operation):
        result = ANY if operation.end is None else operation.result
        return not self.model.observes(operation.op, result)

    def _window(self, numbers):
        """Return the last operations that are refuted, with their values' writers."""
        size = 4
        while size < 2 * len(numbers):
            kept = self._with_givers(numbers[-size:])
            if self._plain(kept):
                return kept
            size *= 2
        return None

    def _with_givers(self, kept):
        kept, look = set(kept), sorted(kept, reverse=True)
        while look:
            number = look.pop(0)
            for value in self.needs[number]:
                if any(value in self.gives[other] for other in kept):
                    continue
                givers = [i for i, gave in enumerate(self.gives) if value in gave]
                before = [i for i in givers if i < number] or givers[:1]
                kept.add(before[-1])
                look.append(before[-1])
        return sorted(kept)

    def _without(self, kept, out):
        """Return `kept` without `out`, and without those that then lack a writer."""
        out = set(out)
        kept = [number for number in kept if number not in out]
        while True:
            given = {value for number in kept for value in self.gives[number]}
            fed = [n for n in kept if all(value in given for value in self.needs[n])]
            if len(fed) == len(kept):
                return kept
            kept = fed

    def _shrunk(self, kept, holds):
        """Return `kept` without the blocks, ever smaller, that `holds` can spare."""
        kept, size = list(kept), max(1, len(kept) // 2)
        while True:
            shorter, at = False, len(kept)
            while at > 0 and time.monotonic() < self.deadline:
                at = min(at, len(kept))
                less = self._without(kept, kept[max(0, at - size) : at])
                if less and len(less) < len(kept) and holds(less):
                    kept, shorter = less, True
                at -= size
            if time.monotonic() > self.deadline or (size == 1 and not shorter):
                return kept
            size = max(1, size // 2)
