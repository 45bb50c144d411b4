"""Constraints that the values alone put on every order of the operations.

    write x 1 ──▶ read x 1        a read comes after the write that it saw
    write x 2 before that read:   then it comes before write x 1, too
    write x 2 after write x 1:    then it comes after that read, too

The rules are applied until nothing new follows. If an operation then precedes itself,
there is no order at all, and no search is needed; else the search has less to try.

Source: Gibbons and Korach, Testing shared memories, 1997.
"""

from collections import defaultdict
from collections.abc import Sequence

from distlab.agree.checkers.partial_order import PartialOrder, bits
from distlab.agree.sequential_specifications import ANY, Model
from distlab.trace import Operation

__all__ = ["Forced"]


class Forced:
    """Constraints from each client's order, and from the writes that reads saw.

    timed: True if an operation that completed before another's invocation precedes it.

    They are known only if each value is written once; else there are none.

    refuted: True if there is certainly no order. before: operation -> its
    predecessors, a bit for each. readers: (key, state) -> the operations that must
    find it. needless: operations of unknown outcome that no other one needs.
    """

    def __init__(
        self, operations: Sequence[Operation], model: Model, timed: bool = False
    ):
        self.refuted, self.before, self.readers, self.needless = False, {}, {}, set()
        self.operations, self.model = operations, model
        self.givers = self._givers()
        if self.givers is None:
            return
        found = self._found()
        self.needless = self._needless(found)
        order = PartialOrder(len(operations), self._programs())
        if timed:
            for number, before in self._answered_before():
                order.direct[number] |= before
        for number, giver in found.items():
            if giver is None:
                self.refuted = True
                return
            if giver >= 0:
                order.add(giver, number)
        self.refuted = not self._saturated(order, found)
        self.before = dict(enumerate(order.before))

    def _givers(self):
        """Return (key, value) -> the operation that wrote it, or None if ambiguous."""
        givers, model = {}, self.model
        if not model.overwrites:
            return None
        for number, o in enumerate(self.operations):
            if model.observes(o.op, ANY if o.end is None else o.result):
                continue
            given = model.gives(o.op, o.value)
            if len(given) != 1 or given == model.initial or (o.key, given) in givers:
                return None
            givers[o.key, given] = number
        return givers

    def _found(self):
        """Return reader -> its value's writer: -1 if initial, None if there is none."""
        found, readers = {}, defaultdict(int)
        for number, o in enumerate(self.operations):
            if o.end is None:
                continue
            for value in self.model.finds(o.op, o.value, o.result):
                readers[o.key, (value,)] |= 1 << number
                beginning = -1 if (value,) == self.model.initial else None
                found[number] = self.givers.get((o.key, (value,)), beginning)
        self.readers = dict(readers)
        return found

    def _needless(self, found):
        """Return the operations without a response that need not have taken effect."""
        answered = [o for o in self.operations if o.end is not None]
        if any(
            self.model.observes(o.op, o.result)
            and not self.model.finds(o.op, o.value, o.result)
            for o in answered
        ):
            return set()  # it found that some value was absent: any write may matter
        used = set(found.values())
        return {
            number
            for number, o in enumerate(self.operations)
            if o.end is None and number not in used and o.op != "cas"
        }

    def _programs(self):
        """Yield pairs (a, b): b directly follows a in one client's order."""
        last = {}
        for number, o in enumerate(self.operations):
            if o.client in last:
                yield last[o.client], number
            if o.end is not None:
                last[o.client] = number

    def _answered_before(self):
        """Yield (operation, bits of those that completed before its invocation)."""
        ends = [(o.end, i) for i, o in enumerate(self.operations) if o.end is not None]
        ends.sort(reverse=True)
        before = 0
        for number, o in enumerate(self.operations):  # in the order of their starts
            while ends and ends[-1][0] < o.start:
                before |= 1 << ends.pop()[1]
            yield number, before

    def _saturated(self, order, found):
        """Apply the rules until nothing new follows; return False on a cycle."""
        writers = defaultdict(int)
        used = set(found.values())
        for (key, _), number in self.givers.items():
            if self.operations[number].end is not None or number in used:
                writers[key] |= 1 << number
        while order.close():
            new = False
            for number, giver in found.items():
                others = writers[self.operations[number].key] & ~(1 << number)
                if giver >= 0:
                    others &= ~(1 << giver)
                for other in bits(others):
                    earlier = order.before[number] >> other & 1
                    later = giver < 0 or order.before[other] >> giver & 1
                    if earlier and giver < 0:
                        return False
                    if earlier and not order.before[giver] >> other & 1:
                        order.add(other, giver)
                        new = True
                    if later and not order.before[other] >> number & 1:
                        order.add(number, other)
                        new = True
            if not new:
                return True
        return False
