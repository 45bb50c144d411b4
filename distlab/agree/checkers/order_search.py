"""The search for an order of operations that explains every result.

    client 0   write x 1   read y 2         the next one is the first that is left
    client 1   write y 2   read x 1         of one of the clients

If time counts, only an operation that was invoked before the earliest response of those
left may come next. Then the same problem is left with fewer operations. This is Wing
and Gong's search, with Lowe's cache of visited configurations: the set of operations
taken and the state they left determine the rest, so no such pair is tried twice.

Two things make it faster here. A result that changes nothing and fits the state is
taken at once, since taking it excludes no order. And of two paths to the same
configuration, the one that has spent fewer operations of unknown outcome is as good as
the other, since none of them has to be spent; the same holds of those that may be left
out, as long as they can be spent at all.

Source: Wing and Gong, Testing and verifying concurrent objects, 1993; Lowe, Testing for
linearizability, 2017, sections 2 to 4; in this form in Porcupine.
"""

from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from distlab.agree.checkers.forced_order import Forced
from distlab.agree.checkers.preconditions import processor_s, result_of
from distlab.agree.checkers.shrink import perhaps
from distlab.agree.sequential_specifications import Model
from distlab.trace import Operation

__all__ = ["SearchResult", "find_order"]

_LOOK_AT_CLOCK = 256  # steps between two looks at the clock
_LONG = 5000  # steps after which the constraints of the values are worth deriving
_NEVER = float("inf")


@dataclass(frozen=True)
class SearchResult:
    """The end of a search.

    order: the operations in an order that explains all, or None.
    in_time: True if it came to an end; if not, nothing is known.
    stuck_s: if there is no order, the latest response that none of them gets past.
    """

    order: list[Operation] | None
    in_time: bool = True
    stuck_s: float | None = None

    @property
    def refuted(self) -> bool:
        """True if there is certainly no order."""
        return self.order is None and self.in_time


def find_order(
    operations: Sequence[Operation],
    model: Model,
    deadline: float,
    optional: Collection[int] = (),
    *,
    timed: bool = True,
) -> SearchResult:
    """Search for an order of the operations that explains their results.

    operations: in the order of their starts, none refused; of one key, if time counts.
    deadline: the time to give up, by processor_s(). optional: if time counts, the
    numbers of operations that may also be left out, though they have an end. timed:
    True if an operation that completed before another's invocation precedes it; else
    only each client's own order counts.

    An operation of unknown outcome comes after its client's earlier ones, or never;
    its client's later ones do not wait for it.
    """
    search = _OrderSearch(operations, model, optional, timed)
    if not timed:
        search.forced = Forced(operations, model)
        if search.forced.refuted:
            return SearchResult(None)
    return search.run(deadline)


class _OrderSearch:
    """One search; `taken` is the order up to here.

    programs: of each client its completed operations, of which `at` are done.
    open: operations of unknown outcome, or optional. waits: number -> those that must
    precede it, in addition to real time and its client's own order, a bit for each.
    done has a bit for every operation of `programs` in `taken`, spent for every other.
    passed, latest: the latest start of those done, and of all in `taken`.
    """

    def __init__(self, operations, model, optional, timed):
        self.operations, self.model = operations, model
        self.optional, self.timed, self.forced = optional, timed, None
        self.step = model.step
        self.asked = [(o.op, o.value, result_of(o)) for o in operations]
        self.start = [o.start for o in operations]
        self.end = [o.end for o in operations]
        keys, clients = {}, {}
        self.key = [keys.setdefault(o.key, len(keys)) for o in operations]
        self.client = [clients.setdefault(o.client, len(clients)) for o in operations]
        self.programs, self.open = [[] for _ in clients], []
        self.waits, self.twin = [0] * len(operations), {}
        same = {}
        for number, operation in enumerate(operations):
            program = self.programs[self.client[number]]
            if operation.end is not None and number not in optional:
                program.append(number)
                continue
            self.open.append(number)
            before = program[-1:]
            if before and (not timed or operations[before[0]].end == operation.start):
                self.waits[number] = 1 << before[0]
            if operation.end is None:
                # An equal one that may come earlier is as good, and spent first.
                asked = self.key[number], operation.op, operation.value
                self.twin[number] = same.get(asked)
                if not self.waits[number]:
                    same[asked] = number
        ends = [(end, i) for i in optional if (end := self.end[i]) is not None]
        self.closing, self.closed = [end for end, _ in sorted(ends)], [0]
        for _, number in sorted(ends):
            self.closed.append(self.closed[-1] | 1 << number)
        self.observes = [
            o.end is not None and model.observes(o.op, o.result) for o in operations
        ]
        self.at = [0] * len(clients)
        self.left = sum(map(len, self.programs))
        self.state = (model.initial,) * len(keys)
        self.done = self.spent = 0
        self.passed = self.latest = -_NEVER
        self.taken = []

    def run(self, deadline):
        """Search, and return the `SearchResult`."""
        seen, steps, stuck = {}, 0, -1.0
        if self.forced:
            self._wait_for(self.forced)
        levels = [self._level()]
        while self.left:
            mark, choices, limit = levels[-1]
            number = next(choices, None)
            if number is None:
                stuck = max(stuck, limit)
                levels.pop()
                if not levels:
                    return SearchResult(None, stuck_s=stuck)
                self._back_to(levels[-1][0])
                continue
            steps += 1
            if steps % _LOOK_AT_CLOCK == 0 and processor_s() > deadline:
                return SearchResult(None, in_time=False)
            if steps == _LONG and self.timed and self._cannot_be():
                return SearchResult(None, stuck_s=_NEVER)
            if not self._take(number):
                continue
            useful = ~self.closed[bisect_left(self.closing, self.passed)]
            if _is_new(seen, (self.done, self.state), self.spent & useful):
                levels.append(self._level())
            else:
                self._back_to(mark)
        return SearchResult([self.operations[number] for number in self.taken])

    def _wait_for(self, forced):
        """Apply the constraints of the values to the search."""
        self.open = [number for number in self.open if number not in forced.needless]
        self.twin = dict.fromkeys(self.twin)
        for number, before in forced.before.items():
            self.waits[number] |= before

    def _cannot_be(self):
        """Return True if the values alone, each written once, exclude every order."""
        operations = perhaps(self.operations, self.optional)
        return Forced(operations, self.model, timed=True).refuted

    def _level(self):
        """Take what fits and changes nothing; return (mark, next candidates, limit).

        limit: the earliest response of those left, if no order can get past it.
        """
        while True:
            programs = zip(self.programs, self.at, strict=True)
            heads = [program[at] for program, at in programs if at < len(program)]
            first = min(heads, key=self.end.__getitem__, default=None)
            limit = _NEVER if first is None or not self.timed else self.end[first]
            fit = [n for n in heads if self.observes[n] and self.start[n] <= limit]
            if not [n for n in fit if not self._closes(n) and self._take(n)]:
                break
        heads += [number for number in self.open if not self.spent >> number & 1]
        choices = sorted([n for n in heads if self.start[n] <= limit])
        place = self.state, self.done, self.spent, self.passed, self.latest
        return (len(self.taken), place), iter(choices), limit

    def _closes(self, number):
        """Return True if an operation would come too early for an optional one."""
        before = bisect_left(self.closing, self.start[number])
        return before > bisect_left(self.closing, self.latest)

    def _take(self, number):
        """Put an operation next if it fits; return True if it did."""
        if self.waits[number] & ~(self.done | self.spent):
            return False
        twin = self.twin.get(number)
        if twin is not None and not self.spent >> twin & 1:
            return False
        key, bit, end = self.key[number], 1 << number, self.end[number]
        state = self.state[key]
        after = self.step(state, *self.asked[number])
        unsure = end is None or number in self.optional
        if after is None or (unsure and after == state):
            return False
        if self.timed and unsure and end is not None and end < self.latest:
            return False
        if after != state:
            if self.forced:
                readers = self.forced.readers.get(
                    (self.operations[number].key, state), 0
                )
                if readers & ~self.done & ~bit:
                    return False  # a later reader could not find this value any more
            self.state = (*self.state[:key], after, *self.state[key + 1 :])
        self.taken.append(number)
        self.latest = max(self.latest, self.start[number])
        if unsure:
            self.spent |= bit
        else:
            self.done |= bit
            self.passed = max(self.passed, self.start[number])
            self.at[self.client[number]] += 1
            self.left -= 1
        return True

    def _back_to(self, mark):
        """Undo the steps after a mark."""
        length, place = mark
        for number in self.taken[length:]:
            if self.done >> number & 1:
                self.at[self.client[number]] -= 1
                self.left += 1
        del self.taken[length:]
        self.state, self.done, self.spent, self.passed, self.latest = place


def _is_new(seen, place, spent):
    """Record a configuration; return False if it was reached before as cheaply."""
    costs = seen.setdefault(place, [])
    if any(cost & spent == cost for cost in costs):
        return False
    costs[:] = [cost for cost in costs if cost & spent != spent]
    costs.append(spent)
    return True
