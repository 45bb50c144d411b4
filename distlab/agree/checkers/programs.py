"""The search for one order that keeps each client's own order, over all keys at once.

    client 0   write x 1   read y 2         what comes next is the first that is left
    client 1   write y 2   read x 1         of one of the clients

It is the search of `search.py`, without time: an answer that changes nothing and fits
is taken at once, and a place in all clients' programs with the same state is tried
once.
"""

import time
from collections.abc import Sequence

from distlab.agree.checkers.evidence import after_of
from distlab.agree.checkers.forced import Forced
from distlab.agree.checkers.search import Found, is_new
from distlab.agree.models import Model
from distlab.trace import Operation

__all__ = ["find_interleaving"]

_LOOK_AT_CLOCK = 256  # steps between two looks


def find_interleaving(
    operations: Sequence[Operation], model: Model, deadline: float
) -> Found:
    """Return an order of the operations that explains them, if there is one.

    operations: sorted by their starts, none refused. One of unknown outcome comes after
    what its client did before, or never; its client's later ones do not wait for it.
    """
    forced = Forced(operations, model)
    if forced.refuted:
        return Found(None)
    return _Search(operations, model, forced).run(deadline)


class _Search:
    """One search; `taken` is the order up to here.

    done has a bit for every operation in it that was answered, spent for every other.
    """

    def __init__(self, operations, model, forced):
        self.operations, self.model, self.forced = operations, model, forced
        self.programs, self.waits, self.open = {}, [], []
        last = {}
        for number, operation in enumerate(operations):
            before = last.get(operation.client)
            wait = forced.before.get(number, 0)
            self.waits.append(wait if before is None else wait | 1 << before)
            if operation.end is None:
                if number not in forced.needless:
                    self.open.append(number)
                continue
            self.programs.setdefault(operation.client, []).append(number)
            last[operation.client] = number
        self.at = dict.fromkeys(self.programs, 0)
        keys = {}
        self.key = [keys.setdefault(o.key, len(keys)) for o in operations]
        self.observes = [
            o.end is not None and model.observes(o.op, o.result) for o in operations
        ]
        self.left = sum(map(len, self.programs.values()))
        self.state = (model.initial,) * len(keys)
        self.done = self.spent = 0
        self.taken = []

    def run(self, deadline):
        """Search, and return how it ended."""
        seen, steps = {}, 0
        choices = self._settled()
        levels = [(self._mark(), choices)]
        while self.left:
            mark, choices = levels[-1]
            number = next(choices, None)
            if number is None:
                levels.pop()
                if not levels:
                    return Found(None)
                self._back_to(levels[-1][0])
                continue
            steps += 1
            if steps % _LOOK_AT_CLOCK == 0 and time.monotonic() > deadline:
                return Found(None, in_time=False)
            if not self._take(number):
                continue
            choices = self._settled()
            if is_new(seen, (self.done, self.state), self.spent):
                levels.append((self._mark(), choices))
            else:
                self._back_to(mark)
        return Found([self.operations[number] for number in self.taken])

    def _take(self, number):
        """Put an operation next, if it can be; return whether it was."""
        if self.waits[number] & ~(self.done | self.spent):
            return False
        operation, key, bit = self.operations[number], self.key[number], 1 << number
        state = self.state[key]
        after = after_of(operation, state, self.model)
        if after is None or (operation.end is None and after == state):
            return False
        if after != state:
            readers = self.forced.readers.get((operation.key, state), 0)
            if readers & ~self.done & ~bit:
                return False  # who has yet to read this value could not any more
            self.state = (*self.state[:key], after, *self.state[key + 1 :])
        if operation.end is None:
            self.spent |= bit
        else:
            self.done |= bit
            self.at[operation.client] += 1
            self.left -= 1
        self.taken.append(number)
        return True

    def _settled(self):
        """Take what fits and changes nothing; return what may be next, one by one."""
        waiting = True
        while waiting:
            waiting = False
            for client, program in self.programs.items():
                for number in program[self.at[client] :]:
                    if not self.observes[number] or not self._take(number):
                        break
                    waiting = True
        heads = [
            program[self.at[client]]
            for client, program in self.programs.items()
            if self.at[client] < len(program)
        ]
        free = [number for number in self.open if not self.spent >> number & 1]
        return iter(sorted(heads + free))

    def _mark(self):
        return len(self.taken), self.state, self.done, self.spent

    def _back_to(self, mark):
        """Undo what came after a mark."""
        length, self.state, self.done, self.spent = mark
        for number in self.taken[length:]:
            if self.operations[number].end is not None:
                self.at[self.operations[number].client] -= 1
                self.left += 1
        del self.taken[length:]
