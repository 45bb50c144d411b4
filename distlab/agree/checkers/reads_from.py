"""Reads and writes of a history, and the writes that each read can have seen.

    history ─▶ Accesses ─▶ every way in which reads can have seen writes ─▶ explain ─▶
    Verdict: ok if one of them is explained, violated if none is

A compare-and-set that succeeded is a read of the old value and then a write of the new
one; one that found another value is ignored. A write of unknown outcome counts only if
a read saw it; a read that missed it violates nothing.
"""

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from distlab.agree.checkers.history_verdict import HistoryVerdict
from distlab.agree.checkers.preconditions import (
    deadline_of,
    fitting,
    history_of,
    nothing_to_judge,
    processor_s,
)
from distlab.agree.checkers.shrink import perhaps, shrink
from distlab.agree.sequential_specifications import CasRegister
from distlab.history import History, called, shown
from distlab.trace import Operation

__all__ = ["INITIAL", "Access", "Accesses", "Explained", "check_accesses"]

INITIAL = -1  # the number of the initial value, as if it were a write


class Access(NamedTuple):
    """One read or write. certain: True if it took effect for sure."""

    operation: Operation
    writes: bool
    value: Any
    certain: bool

    @property
    def client(self) -> int | str:
        """The client that made it."""
        return self.operation.client

    @property
    def key(self) -> Any:
        """The key that it reads or writes."""
        return self.operation.key


class Accesses:
    """The reads and writes of a history, numbered in the order of their starts.

    all: every access. reads: the numbers of the reads. sources: read -> the writes that
    it can have seen. unseen: reads of values that were never written.
    """

    def __init__(self, history: History, initial: Any = None):
        fitting(history, CasRegister(initial))
        self.all = [access for o in history for access in _parts(o)]
        self.reads = [i for i, access in enumerate(self.all) if not access.writes]
        writers = defaultdict(list)
        for number, access in enumerate(self.all):
            if access.writes:
                writers[access.key, access.value].append(number)
        self.sources = {}
        for number in self.reads:
            read = self.all[number]
            self.sources[number] = list(writers[read.key, read.value])
            if read.value == initial:
                self.sources[number].append(INITIAL)
        self.unseen = [number for number in self.reads if not self.sources[number]]

    def choices(self) -> Iterator[dict[int, int]]:
        """Yield every way in which the reads can have seen writes: read -> write.

        There is one if no value is written twice to a key, and not the initial one.
        """
        for chosen in itertools.product(*self.sources.values()):
            yield dict(zip(self.sources, chosen, strict=True))

    @property
    def ambiguous(self) -> int:
        """The number of reads that can have seen several writes."""
        return sum(len(sources) > 1 for sources in self.sources.values())

    def returned(self, read: int) -> str:
        """Return a read and its result in words."""
        access = self.all[read]
        words = f"{called(access.client)}'s read of {shown(access.key)} returned"
        return f"{words} {shown(access.value)}"

    def in_use(self, seen: dict[int, int]) -> list[int]:
        """Return the accesses that took effect if reads saw these writes."""
        used = set(seen.values())
        return [
            number
            for number, access in enumerate(self.all)
            if access.certain or number in used
        ]

    def program_order(self, used: list[int]) -> list[tuple[int, int]]:
        """Return pairs (a, b) in which b directly follows a in one client's order.

        One of unknown outcome follows what its client did before; nothing follows it.
        """
        last, pairs = {}, []
        for number in used:
            access = self.all[number]
            if access.client in last:
                pairs.append((last[access.client], number))
            if access.certain:
                last[access.client] = number
        return pairs


def _parts(operation):
    op, value, outcome = operation.op, operation.value, operation.outcome
    if outcome == "failed":
        return
    if op == "read":
        if outcome == "ok":
            yield Access(operation, False, operation.result, True)
    elif op == "write":
        yield Access(operation, True, value, outcome == "ok")
    elif outcome == "unknown":
        yield Access(operation, True, value[1], False)
    elif operation.result is True:
        yield Access(operation, False, value[0], True)
        yield Access(operation, True, value[1], True)


class Explained(NamedTuple):
    """A model's judgement of reads that saw certain writes.

    violated: the reason if the model forbids them, else "". orders: a function that
    makes the orders that explain them. untested: the reason if no read tested it.
    """

    violated: str = ""
    orders: Callable[[], dict] = dict
    untested: str = ""


def check_accesses(
    name: str,
    explain: Callable[[Accesses, dict[int, int]], Explained],
    history: History,
    initial: Any,
    within_s: float,
    why_ok: str,
) -> HistoryVerdict:
    """Return a model's verdict; `explain` judges one assignment of writes to reads."""
    history = history_of(history)
    deadline = deadline_of(within_s)
    if why := nothing_to_judge(history):
        return HistoryVerdict("inconclusive", name, why, history)
    accesses = Accesses(history, initial)
    found = _judged(accesses, explain, deadline)
    if found is None:
        why = (
            f"{within_s:g} s were too short: {accesses.ambiguous} reads returned a "
            "value that was written several times, and it is open which they saw. "
            "Have clients write different values."
        )
        return HistoryVerdict("inconclusive", name, why, history)
    if found.untested:
        return HistoryVerdict("inconclusive", name, found.untested, history)
    if not found.violated:
        return HistoryVerdict("ok", name, why_ok, history, orders=found.orders())

    def judged(operations, until):
        return _judged(Accesses(History(operations), initial), explain, until)

    def refuted(operations, optional, until):
        found = judged(perhaps(operations, optional), until)
        return found is not None and bool(found.violated)

    done = [o for o in history if o.outcome != "failed"]
    kept = shrink(done, refuted, CasRegister(initial), within_s)
    why = (judged(kept, deadline_of(within_s)) or found).violated
    return HistoryVerdict("violated", name, why, history, smallest=History(kept))


def _judged(accesses, explain, deadline):
    """Return the `Explained` of an allowed assignment of writes, else of the last.

    None: the time was too short to try them all.
    """
    if accesses.unseen:
        returned = accesses.returned(accesses.unseen[0])
        return Explained(f"{returned}, which was never written.")
    found = None
    for seen in accesses.choices():
        found = explain(accesses, seen)
        if not found.violated:
            return found
        if accesses.ambiguous and processor_s() > deadline:
            return None
    return found
