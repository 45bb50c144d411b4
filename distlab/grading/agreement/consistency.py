"""Consistency models of a few operations, decided by trying orders.

    linearizable   one order explains all answers, and keeps real time
    sequential     one order explains all answers, and keeps each client's own order
    causal         for each client, one order of what it did and of all writes explains
                   its answers, and keeps what is known to have come before what
    eventual       all clients' last reads of a key return the same, which was written
    none           not even that

A model is a set of pairs: which operation has to be before which. Each value of a key
is written once.
"""

from collections.abc import Sequence
from itertools import product

from distlab.grading.agreement.orders import before
from distlab.trace import Operation

__all__ = [
    "MODELS",
    "agreed",
    "first_unexplained",
    "pairs_of",
    "parts_of",
    "satisfies",
    "source_of",
]

MODELS = "linearizable", "sequential", "causal", "eventual", "none"
Pairs = set[tuple[int, int]]


def source_of(operations: Sequence[Operation], read: Operation) -> Operation | None:
    """Return the write whose value a read returned."""
    writes = [o for o in operations if o.op == "write" and o.key == read.key]
    return next((one for one in writes if one.value == read.result), None)


def pairs_of(model: str, operations: Sequence[Operation]) -> Pairs:
    """Return places (a, b): in each order of the model a has to be before b."""
    both = list(product(enumerate(operations), repeat=2))
    if model == "linearizable":
        return {(i, j) for (i, a), (j, b) in both if before(a, b)}
    own = {(i, j) for (i, a), (j, b) in both if a.client == b.client and before(a, b)}
    if model == "sequential":
        return own
    seen = {
        (i, j)
        for (i, a), (j, b) in both
        if b.op == "read" and a is source_of(operations, b)
    }
    return _closed(own | seen)


def _closed(pairs):
    """Return the pairs, and those that follow from them."""
    while True:
        more = {(i, k) for (i, j), (h, k) in product(pairs, repeat=2) if j == h}
        if more <= pairs:
            return pairs
        pairs = pairs | more


def parts_of(model: str, operations: Sequence[Operation]) -> dict[object, list[int]]:
    """Return what has an order of its own: client -> places, or None -> all of them.

    A client that reads nothing has nothing to be explained.
    """
    places = range(len(operations))
    if model != "causal":
        return {None: list(places)}
    readers = {one.client for one in operations if one.op == "read"}
    return {
        client: [
            place
            for place in places
            if operations[place].client == client or operations[place].op == "write"
        ]
        for client in sorted(readers)
    }


def first_unexplained(order: Sequence[Operation]) -> tuple | None:
    """Return (read, value that it would find), the first read that does not fit."""
    value = {}
    for one in order:
        if one.op == "write":
            value[one.key] = one.value
        elif one.result != value.get(one.key):
            return one, value.get(one.key)
    return None


def agreed(operations: Sequence[Operation]) -> bool:
    """Whether the last reads of each key, one of each client, return one value."""
    for key in {one.key for one in operations}:
        reads = [o for o in operations if o.op == "read" and o.key == key]
        last = {one.client: one for one in sorted(reads, key=lambda one: one.start)}
        values = {one.result for one in last.values()}
        if len(values) > 1 or any(
            source_of(operations, r) is None for r in last.values()
        ):
            return False
    return True


def satisfies(model: str, operations: Sequence[Operation]) -> bool:
    """Whether operations satisfy one of the first four models."""
    if model == "eventual":
        return agreed(operations)
    pairs = pairs_of(model, operations)
    if any(i == j for i, j in pairs):
        return False
    return all(
        _has_order(operations, part, pairs, {})
        for part in parts_of(model, operations).values()
    )


def _has_order(operations, left, pairs, value):
    if not left:
        return True
    for place in left:
        one = operations[place]
        if any((other, place) in pairs for other in left):
            continue
        if one.op == "read" and one.result != value.get(one.key):
            continue
        rest = [other for other in left if other != place]
        found = value | {one.key: one.value} if one.op == "write" else value
        if _has_order(operations, rest, pairs, found):
            return True
    return False
