"""The smallest sub-history that a checker refutes, as a counterexample.

Operations are left out as long as the rest contradicts the model (delta debugging). Two
rules keep it sound. An operation that found a value goes with one that wrote it: a read
of 1 without any write of 1 would be a contradiction made by the shrinking. And an
operation left out may have taken effect in its time, or not: if that explained the
rest, the rest would accuse a correct store.

Guarantee: the result is refuted, also together with all other operations, whether or
not they took effect; and if the time was enough, none of it can be left out any more.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence

from distlab.agree.checkers.preconditions import (
    after_of,
    deadline_of,
    given_by,
    gives,
    processor_s,
    result_of,
)
from distlab.agree.sequential_specifications import Model
from distlab.trace import Operation

__all__ = ["perhaps", "shrink"]

Refuted = Callable[[list[Operation], Collection[int], float], bool]

_EXPLAINING = 0.25  # of a check's time limit: the most that shrinking may take
_EACH = 0.3  # of that time: the most that one call of `refuted` may take


def shrink(
    operations: Sequence[Operation],
    refuted: Refuted,
    model: Model,
    within_s: float,
    until_s: float | None = None,
) -> list[Operation]:
    """Return a few of the operations that are refuted already without the others.

    operations: refuted as they are, and sorted by start. refuted: returns True if
    surely no order explains the given operations, of which some, by their numbers, may
    or may not have taken effect; False when its time is over. until_s: if time counts,
    the response that no order gets past.
    """
    return _Shrinking(operations, refuted, model, within_s).found(until_s)


def perhaps(
    operations: Sequence[Operation], optional: Collection[int]
) -> list[Operation]:
    """Return the operations, those whose numbers are optional with unknown outcome."""
    return [
        o._replace(end=None, outcome="unknown") if number in optional else o
        for number, o in enumerate(operations)
    ]


class _Shrinking:
    def __init__(self, operations, refuted, model, within_s):
        self.operations, self.model = list(operations), model
        self.refuted, self.each_s = refuted, _EACH * _EXPLAINING * within_s
        self.deadline = deadline_of(_EXPLAINING * within_s)
        self.givers = defaultdict(set)
        for number, operation in enumerate(self.operations):
            for value in given_by(operation, model):
                self.givers[operation.key, value].add(number)
        self.needs = [self._needed(o) for o in self.operations]

    def found(self, until_s):
        everything = range(len(self.operations))
        self.timed = until_s is not None
        if self.timed:
            early = [i for i in everything if self.operations[i].start <= until_s]
            kept = self._window(early, self._honest) or everything
            kept = self._shrunk(kept, self._honest)
        else:
            kept = self._window(everything, self._plain) or everything
            kept = self._shrunk(kept, self._plain)
            if not self._honest(kept):
                kept = self._shrunk(everything, self._honest)
        return [self.operations[number] for number in kept]

    def _needed(self, operation):
        """Return sets of operations; of each, another one must have been there."""
        fresh = after_of(operation, self.model.initial, self.model)
        if operation.end is None or fresh is not None:
            return ()
        needs = []
        for value in self.model.finds(operation.op, operation.value, operation.result):
            found = operation.key, value
            if found not in self.givers:
                self.givers[found] = {
                    number
                    for number, o in enumerate(self.operations)
                    if o.key == operation.key and gives(o, value, self.model)
                }
            needs.append(self.givers[found])
        return tuple(filter(None, needs))

    def _plain(self, kept):
        return self._asked([self.operations[number] for number in kept], ())

    def _honest(self, kept):
        """Return True if `kept` is refuted whether or not the others took effect."""
        if not self._plain(kept):
            return False
        kept = set(kept)
        own = [self.operations[number] for number in kept]
        first = min(o.start for o in own)
        last = max((o.end for o in own if o.end is not None), default=0)
        judged, optional, before = [], set(), set()
        for number, operation in enumerate(self.operations):
            if number not in kept:
                late = self.timed and operation.start > last
                if late or self.model.observes(operation.op, result_of(operation)):
                    continue
                if written := self._written(operation, first):
                    if (operation.key, written.value) in before:
                        continue
                    before.add((operation.key, written.value))
                operation = written or operation
                optional.add(len(judged))
            judged.append(operation)
        return self._asked(judged, optional)

    def _written(self, operation, first):
        """Return an operation that ended before `first` as a write of what it gave.

        One such write stands for all of a value, since each may be left out.
        """
        over = self.timed and operation.end is not None and operation.end < first
        given = given_by(operation, self.model) if over else ()
        if given and self.model.overwrites and "write" in self.model.operations:
            return operation._replace(op="write", value=given[0])
        return None

    def _asked(self, operations, optional):
        until = min(self.deadline, processor_s() + self.each_s)
        return self.refuted(operations, optional, until)

    def _window(self, numbers, holds):
        """Return the last operations that are refuted, with their values' writers."""
        size = 4
        while size < 2 * len(numbers):
            kept = self._with_givers(numbers[-size:])
            if holds(kept):
                return kept
            size *= 2
        return None

    def _with_givers(self, kept):
        kept, look = set(kept), sorted(kept, reverse=True)
        while look:
            number = look.pop(0)
            for givers in self.needs[number]:
                if kept.isdisjoint(givers):
                    before = [i for i in givers if i < number] or [min(givers)]
                    kept.add(max(before))
                    look.append(max(before))
        return sorted(kept)

    def _without(self, kept, out):
        """Return `kept` without `out`, and without those that then lack a writer."""
        kept = set(kept).difference(out)
        while True:
            fed = {
                number
                for number in kept
                if not any(kept.isdisjoint(givers) for givers in self.needs[number])
            }
            if len(fed) == len(kept):
                return sorted(kept)
            kept = fed

    def _shrunk(self, kept, holds):
        """Return `kept` without the blocks, ever smaller, that `holds` can spare."""
        kept, size = list(kept), max(1, len(kept) // 2)
        while True:
            shorter, at = False, len(kept)
            while at > 0 and processor_s() < self.deadline:
                at = min(at, len(kept))
                less = self._without(kept, kept[max(0, at - size) : at])
                if less and len(less) < len(kept) and holds(less):
                    kept, shorter = less, True
                at -= size
            if processor_s() > self.deadline or (size == 1 and not shorter):
                return kept
            size = max(1, size // 2)
