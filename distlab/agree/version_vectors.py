"""Vector clocks, version vectors, dots and hybrid logical clocks.

    vector clock      a number for each process: its events; orders events
    version vector    a number for each replica: its writes of a key; orders versions
    dotted values     a version vector, and for each value the dot of its own write
    hybrid time       a physical time and a counter: two numbers, whatever the nodes

The first two are tuples of numbers, compared and merged alike; they differ in what they
count.
"""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from distlab.errors import InvalidArgument
from distlab.trace import Trace

__all__ = [
    "Dot",
    "DottedValues",
    "HybridTime",
    "Vector",
    "check_replica",
    "compare_vectors",
    "covers",
    "event_clocks",
    "increment_vector",
    "merge_vectors",
    "zero_vector",
]

Vector = tuple[int, ...]


def zero_vector(replicas: int) -> Vector:
    """Return the vector that counts nothing yet.

    Raises: InvalidArgument unless `replicas` is a number from 1 on.
    """
    if not isinstance(replicas, int) or isinstance(replicas, bool) or replicas < 1:
        raise InvalidArgument(f"replicas is a number from 1 on, and got {replicas!r}.")
    return (0,) * replicas


def covers(a: Vector, b: Vector) -> bool:
    """Return True if whoever has vector `a` knows of all that `b` counts."""
    _check(a, b)
    return all(x >= y for x, y in zip(a, b, strict=True))


def compare_vectors(a: Vector, b: Vector) -> str:
    """Return "before", "after", "equal" or "concurrent": `a`, seen from `b`.

    Raises: InvalidArgument if they are not vectors of the same replicas.
    """
    above, below = covers(a, b), covers(b, a)
    if above and below:
        return "equal"
    return "after" if above else "before" if below else "concurrent"


def merge_vectors(*vectors: Vector) -> Vector:
    """Return the least vector that covers all of these."""
    _check(*vectors)
    return tuple(map(max, zip(*vectors, strict=True)))


def increment_vector(vector: Vector, replica: int) -> Vector:
    """Return the vector with one more event, or write, of a replica.

    Raises: InvalidArgument for a replica that the vector does not have.
    """
    check_replica(replica, len(vector))
    return (*vector[:replica], vector[replica] + 1, *vector[replica + 1 :])


def check_replica(replica: int, replicas: int) -> None:
    """Check that a replica is one of 0 to `replicas` - 1.

    Raises: InvalidArgument.
    """
    whole = isinstance(replica, int) and not isinstance(replica, bool)
    if not whole or not 0 <= replica < replicas:
        raise InvalidArgument(
            f"replica {replica!r} is unknown: of {replicas} replicas the last is "
            f"{replicas - 1}."
        )


def _check(*vectors):
    for vector in vectors:
        plain = isinstance(vector, tuple) and len(vector) == len(vectors[0])
        if not plain or not all(isinstance(n, int) and n >= 0 for n in vector):
            raise InvalidArgument(
                "vectors of the same replicas are tuples with a number from 0 on for "
                f"each, such as (0, 2, 1), and got {', '.join(map(repr, vectors))}."
            )


def event_clocks(trace: Trace) -> list[Vector]:
    """Return the vector clock of every event of a run, in the order of `trace.events`.

    Nodes and clients count their own events. A receive merges the clock of its send, so
    one event can have caused another exactly if its clock is before the other's. Faults
    are not events of a process, and are not counted.

    Source: Fidge 1988; Mattern 1989.
    """
    clocks = [(0,) * trace.world_size] * trace.world_size
    sent, found = {}, []
    for event in trace.events:
        clock = clocks[event.rank]
        if event.kind != "fault":
            if event.kind == "recv":
                clock = merge_vectors(clock, sent[event.step])
            clock = increment_vector(clock, event.rank)
        if event.kind == "send":
            sent[event.step] = clock
        clocks[event.rank] = clock
        found.append(clock)
    return found


class Dot(NamedTuple):
    """One write: the `number`-th, from 1, that `replica` has taken of a key."""

    replica: int
    number: int

    def __repr__(self):
        return f"{self.replica}.{self.number}"


class DottedValues(NamedTuple):
    """The concurrent values of a key, each with the dot of the write that made it.

    vector: for each replica the number of its writes that are known here, those that
    were replaced included. entries: pairs (dot, value), sorted by dot.

    Invariant: a dot that the vector covers and that has no entry was replaced. So no
    mark of a deleted value is kept, and a merge needs no history.
    Source: Preguica et al. 2012 (dotted version vectors).
    """

    vector: Vector
    entries: tuple[tuple[Dot, Any], ...] = ()

    @classmethod
    def empty(cls, replicas: int) -> "DottedValues":
        """Return the state before any write."""
        return cls(zero_vector(replicas))

    def __repr__(self):
        entries = (f"{value!r} at {dot}" for dot, value in self.entries)
        return f"{self.vector} {{{', '.join(entries)}}}"

    @property
    def values(self) -> tuple:
        """The values, one for each entry."""
        return tuple(value for _, value in self.entries)

    def write(self, replica: int, value: Any, context: Vector) -> "DottedValues":
        """Write a value at a replica, for a client that has read `context`.

        context: the vector that came with the client's read. It replaces exactly the
        values whose dots this covers.
        """
        _check(self.vector, context)
        seen = [dot for dot, _ in self.entries if dot.number <= context[dot.replica]]
        known = self._replace(vector=merge_vectors(self.vector, context))
        return known.replaced(seen, known.next_dot(replica), value)

    def next_dot(self, replica: int) -> Dot:
        """Return the dot of a replica's next write."""
        return Dot(replica, increment_vector(self.vector, replica)[replica])

    def replaced(
        self, old: Iterable[Dot], dot: Dot | None = None, value: Any = None
    ) -> "DottedValues":
        """Return the state without the dots `old`, and with a new one if given."""
        entries, vector = dict(self.entries), list(self.vector)
        for each in old:
            entries.pop(each, None)
        if dot is not None:
            entries[dot] = value
            vector[dot.replica] = max(vector[dot.replica], dot.number)
        return self._replace(vector=tuple(vector), entries=_sorted(entries.items()))

    def merge(self, other: "DottedValues") -> "DottedValues":
        """Merge two states: a value stays if neither side has seen it replaced."""
        vector = merge_vectors(self.vector, other.vector)
        kept = _not_replaced(self, other) | _not_replaced(other, self)
        return self._replace(vector=vector, entries=_sorted(kept.items()))


def _sorted(entries):
    return tuple(sorted(entries, key=lambda entry: entry[0]))


def _not_replaced(state, other):
    """Return the entries of a state that another one has, too, or does not know of."""
    theirs = dict(other.entries)
    return {
        dot: value
        for dot, value in state.entries
        if dot in theirs or dot.number > other.vector[dot.replica]
    }


class HybridTime(NamedTuple):
    """A hybrid logical time: the greatest physical time known, and a counter.

    Of two events of which one can have caused the other, it has the smaller time,
    whatever the clocks show. No time is ahead of all clocks. While a node's clock is
    behind the time that it knows, as after a jump back, the counter goes on.

    Source: Kulkarni et al. 2014.
    """

    physical_s: float = 0.0
    counter: int = 0

    def tick(self, clock_s: float) -> "HybridTime":
        """Return the time of the next event of a node whose clock shows `clock_s`."""
        real = isinstance(clock_s, int | float) and not isinstance(clock_s, bool)
        if not real or not math.isfinite(clock_s):
            raise InvalidArgument(f"a clock shows seconds, and got {clock_s!r}.")
        if clock_s > self.physical_s:
            return HybridTime(clock_s)
        return self._replace(counter=self.counter + 1)

    def receive(self, sent: "HybridTime", clock_s: float) -> "HybridTime":
        """Return the time of the receipt of a message that was sent at `sent`."""
        return max(self, sent).tick(clock_s)
