"""Reads and writes, and which write each read can have seen.

A compare-and-set that was done is a read of the old value and then a write of the new
one; one that found another value says nothing here. A write of unknown outcome counts
where a read saw it; nobody can be blamed for not having seen it.
"""

import itertools
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from distlab.agree.checkers.arguments import fitting
from distlab.agree.models import CasRegister
from distlab.history import History
from distlab.trace import Operation

__all__ = ["INITIAL", "Access", "Accesses"]

INITIAL = -1  # the number of the write that nobody made


class Access(NamedTuple):
    """One read or write. certain: whether it took effect for sure."""

    operation: Operation
    writes: bool
    value: Any
    certain: bool

    @property
    def client(self) -> int | str:
        """Who made it."""
        return self.operation.client

    @property
    def key(self) -> Any:
        """What it is about."""
        return self.operation.key


class Accesses:
    """The reads and writes of a history, numbered in the order of their starts.

    all: every access. reads: the numbers of the reads. sources: read -> the writes that
    it can have seen. unseen: reads of values that nobody wrote.
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
        """How many reads can have seen several writes."""
        return sum(len(sources) > 1 for sources in self.sources.values())

    def undecided(self, within_s: float) -> str:
        """Return in words why so much time did not lead to a verdict."""
        return (
            f"{within_s:g} s were too short: {self.ambiguous} reads returned a value "
            "that was written several times, and nobody can say which they saw. Have "
            "clients write different values."
        )

    def in_use(self, seen: dict[int, int]) -> list[int]:
        """Return the accesses that took effect if reads saw these writes."""
        used = set(seen.values())
        return [
            number
            for number, access in enumerate(self.all)
            if access.certain or number in used
        ]

    def program_order(self, used: list[int]) -> list[tuple[int, int]]:
        """Return the pairs of which one directly follows the other in a client's order.

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
