"""CRDTs: values whose replicas converge by a merge, in whatever order it happens.

    GCounter    increment                  a number for each replica, merged by maximum
    PNCounter   increment, decrement       two of these
    ORSet       add, remove; add wins      dots: no mark of a removed element is kept
    LWWMap      put, remove; last wins     a time stamp for each key

Each is an immutable value: `increment` and its like return a new one, and take the
replica's number first. `merge` is commutative, associative and idempotent, so messages
may be duplicated, reordered and, if a later one comes, dropped. Replicas send whole
values, or operations, which take effect once everywhere, in causal order.
A replica that has lost what it saved must come back with a new number: with the old one
it would use its counts and dots for a second time.

Source: Shapiro et al. 2011; for the set, Bieniusa et al. 2012.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any, NamedTuple

from distlab.agree.stores.any_replica import AnyReplica
from distlab.agree.stores.causal import Causal
from distlab.agree.stores.store import Store
from distlab.agree.version_vectors import (
    DottedValues,
    check_replica,
    merge_vectors,
    zero_vector,
)
from distlab.errors import InvalidArgument
from distlab.network import Effect, Refuse
from distlab.trace import Call

__all__ = [
    "GCounter",
    "LWWMap",
    "ORSet",
    "OperationBased",
    "PNCounter",
    "StateBased",
    "operation",
]


def operation(prepare: Callable) -> Callable:
    """Turn a CRDT's method that prepares an operation into one that applies it, too.

    The operation is plain data, which `applied` takes, at this and at any replica.
    """

    @wraps(prepare)
    def method(self, replica, *args):
        return self.applied(prepare(self, replica, *args))

    method.prepare = prepare
    return method


class GCounter(NamedTuple):
    """A counter that only grows. counts: for each replica, what was added there."""

    counts: tuple[int, ...]

    def __repr__(self):
        return f"+{self.counts}"

    @classmethod
    def empty(cls, replicas: int) -> "GCounter":
        """Return a counter at 0."""
        return cls(zero_vector(replicas))

    @operation
    def increment(self, replica: int, by: int | None = None) -> tuple:
        """Add `by`, or 1, at a replica.

        Raises: InvalidArgument if `by` is negative, or the replica unknown.
        """
        check_replica(replica, len(self.counts))
        by = 1 if by is None else by
        if type(by) is not int or by < 0:
            raise InvalidArgument(
                f"a count grows by a whole number from 0 on, and got {by!r}. To count "
                "down, decrement a PNCounter."
            )
        return replica, by

    def applied(self, prepared: tuple) -> "GCounter":
        """Return the counter after an operation."""
        replica, by = prepared
        counts = list(self.counts)
        counts[replica] += by
        return self._replace(counts=tuple(counts))

    def merge(self, other: "GCounter") -> "GCounter":
        """Merge two counters: of each replica's counts, the greater is the later."""
        return self._replace(counts=merge_vectors(self.counts, other.counts))

    @property
    def value(self) -> int:
        """The sum over all replicas."""
        return sum(self.counts)


class PNCounter(NamedTuple):
    """A counter that grows and shrinks, of two that only grow."""

    ups: GCounter
    downs: GCounter

    def __repr__(self):
        return f"+{self.ups.counts} -{self.downs.counts}"

    @classmethod
    def empty(cls, replicas: int) -> "PNCounter":
        """Return a counter at 0."""
        return cls(GCounter.empty(replicas), GCounter.empty(replicas))

    @operation
    def increment(self, replica: int, by: int | None = None) -> tuple:
        """Add `by`, or 1, at a replica."""
        return "ups", GCounter.increment.prepare(self.ups, replica, by)

    @operation
    def decrement(self, replica: int, by: int | None = None) -> tuple:
        """Subtract `by`, or 1, at a replica."""
        return "downs", GCounter.increment.prepare(self.downs, replica, by)

    def applied(self, prepared: tuple) -> "PNCounter":
        """Return the counter after an operation."""
        side, increment = prepared
        return self._replace(**{side: getattr(self, side).applied(increment)})

    def merge(self, other: "PNCounter") -> "PNCounter":
        """Merge both parts."""
        ups, downs = self.ups.merge(other.ups), self.downs.merge(other.downs)
        return self._replace(ups=ups, downs=downs)

    @property
    def value(self) -> int:
        """The difference."""
        return self.ups.value - self.downs.value


class ORSet(DottedValues):
    """An observed-remove set: a removal removes the adds that it knows of, no others.

    So an add that is concurrent with a removal of the same element wins.
    """

    @operation
    def add(self, replica: int, element: Any) -> tuple:
        """Add an element at a replica."""
        return self._dots(_hashable(element)), self.next_dot(replica), element

    @operation
    def remove(self, replica: int, element: Any) -> tuple:
        """Remove an element at a replica.

        Raises: InvalidArgument if it is not in the set there.
        """
        check_replica(replica, len(self.vector))
        _check_known(element, self._dots(element), replica)
        return (self._dots(element),)

    def _dots(self, element):
        return tuple(dot for dot, value in self.entries if value == element)

    def applied(self, prepared: tuple) -> "ORSet":
        """Return the set after an operation."""
        return self.replaced(*prepared)

    @property
    def value(self) -> frozenset:
        """The elements."""
        return frozenset(self.values)


class LWWMap(NamedTuple):
    """A map in which for each key the write with the greatest stamp wins.

    entries: (key, stamp, values), sorted by key as text. stamp: (time, replica), so
    that no two replicas use the same. values: (value,), or () for a removed key, whose
    entry stays so that an older write does not bring it back.
    """

    replicas: int
    entries: tuple[tuple[Any, tuple, tuple], ...] = ()

    @classmethod
    def empty(cls, replicas: int) -> "LWWMap":
        """Return an empty map."""
        return cls(len(zero_vector(replicas)))

    @operation
    def put(self, replica: int, item: tuple, time: Any = None) -> tuple:
        """Write an item (key, value) at a replica.

        time: of any clock; by default one more than the greatest known here. A write
            whose time is below that of the entry that it should replace is lost.
        Raises: InvalidArgument if the replica wrote the key at this time before.
        """
        if not isinstance(item, tuple) or len(item) != 2:
            raise InvalidArgument(f"an item is a pair (key, value), and got {item!r}.")
        return self._stamped(replica, item[0], item[1:], time)

    @operation
    def remove(self, replica: int, key: Any, time: Any = None) -> tuple:
        """Remove a key at a replica.

        Raises: InvalidArgument if the map does not have it there.
        """
        _check_known(key, _hashable(key) in self.value, replica)
        return self._stamped(replica, key, (), time)

    def _stamped(self, replica, key, values, time):
        check_replica(replica, self.replicas)
        stamps = {each: stamp for each, stamp, _ in self.entries}
        if time is None:
            time = 1 + max((latest for latest, _ in stamps.values()), default=0)
        if stamps.get(_hashable(key)) == (time, replica) or time != time:
            raise InvalidArgument(
                f"replica {replica} cannot write {key!r} at time {time!r}: it did so "
                "before, or that is no time. Give each of its writes another time."
            )
        return key, (time, replica), values

    def applied(self, prepared: tuple) -> "LWWMap":
        """Return the map after an operation."""
        return self.merge(self._replace(entries=(prepared,)))

    def merge(self, other: "LWWMap") -> "LWWMap":
        """Merge two maps: for each key, the entry with the greater stamp stays."""
        both = sorted(self.entries + other.entries, key=lambda entry: entry[1])
        latest = {entry[0]: entry for entry in both}
        entries = sorted(latest.values(), key=lambda entry: repr(entry[0]))
        return self._replace(entries=tuple(entries))

    @property
    def value(self) -> dict:
        """A dict of the keys that are not removed."""
        return {key: values[0] for key, _, values in self.entries if values}


def _hashable(element):
    """Return an element; raise InvalidArgument if it can change."""
    try:
        hash(element)
    except TypeError:
        raise InvalidArgument(
            f"an element, or a key, is a value that cannot change, and got {element!r}."
        ) from None
    return element


def _check_known(element, known, replica):
    if not known:
        raise InvalidArgument(
            f"replica {replica} does not have {element!r}, and can remove only what it "
            "knows of."
        )


class _ConvergingStore(Store):
    """What both stores of CRDTs share.

    kind: the class of the values. Calls are "read" and its operations, for example
    Call("add", key, element). What a replica cannot do, such as to remove an element
    that it does not have, it refuses.
    """

    def __init__(self, me: int, peers: Sequence[int], *, kind: type = PNCounter):
        super().__init__(me, peers)
        self.nothing = kind.empty(len(self.peers) + 1)
        known = (name for name in dir(kind) if hasattr(getattr(kind, name), "prepare"))
        self.calls = ("read", *known)

    def serve(self, request: int, call: Call) -> Iterator[Effect]:
        """Reply at once from this replica, or refuse what cannot be done."""
        try:
            yield from super().serve(request, call._replace(value=call))
        except InvalidArgument as error:
            yield Refuse(request, str(error))


class StateBased(_ConvergingStore, AnyReplica):
    """A store of CRDTs of one kind, whose replicas send whole values, and merge."""

    def written(self, key: Any, held: Any, value: Call) -> Any:
        """Return the value after the operation of a call."""
        return getattr(held, value.op)(self.me, value.value)

    def merged(self, mine: Any, theirs: Any) -> Any:
        """Return the merge of two values."""
        return mine.merge(theirs)

    def shown(self, key: Any, held: Any) -> Any:
        """Return the value that a client reads."""
        return held.value


class OperationBased(_ConvergingStore, Causal):
    """A store of CRDTs of one kind, whose replicas send operations, in causal order.

    Invariant: replicas that have taken equally many operations of each replica hold the
    same, since operations of which neither knew of the other commute.
    Cost: a message with one operation and n numbers, where `StateBased` sends it all.
    """

    def written(self, key: Any, held: Any, value: Call) -> tuple:
        """Return the operation of a call."""
        return getattr(type(held), value.op).prepare(held, self.me, value.value)

    def merged(self, mine: Any, write: tuple) -> Any:
        """Return the value after an operation."""
        return mine.applied(write)
