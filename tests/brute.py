"""Brute force: whether any order explains a history, by trying every one of them.

Straight from the definitions, for histories of a few operations; nothing in here is
shared with the checkers but the classes of operations.
"""

from itertools import product


def right_answer(op, value, state, result, known):
    """Return (whether a store in `state` can answer so, its next state)."""
    if op == "read":
        if isinstance(state, frozenset):
            return not known or frozenset(result or ()) == state, state
        return not known or result == state, state
    if op == "write":
        return True, value
    if op == "cas":
        done = state == value[0]
        return not known or result == done, value[1] if done else state
    if op == "enqueue":
        return True, (*state, value)
    if op == "dequeue":
        first = state[0] if state else None
        return not known or result == first, state[1:]
    if op == "acquire":
        return not known or (result is False) == state, True
    if op == "release":
        return not known or (result is False) == (not state), False
    if op in ("add", "remove"):
        changes = (value in state) == (op == "remove")
        after = state | {value} if op == "add" else state - {value}
        return not known or result is None or result == changes, after
    assert op == "contains"
    return not known or result == (value in state), state


def choices(operations, optional=()):
    """Yield every set of operations that may have taken effect."""
    free = {id(o) for o in optional}
    certain = [o for o in operations if o.outcome == "ok" and id(o) not in free]
    maybe = [o for o in operations if o.outcome == "unknown" or id(o) in free]
    for taken in product([False, True], repeat=len(maybe)):
        yield certain + [o for o, take in zip(maybe, taken, strict=True) if take]


def some_order(operations, initial, before, optional=()):
    """Return whether any order that respects `before(a, b)` explains the operations."""
    return any(
        _completed(taken, {}, initial, before)
        for taken in choices(operations, optional)
    )


def _completed(rest, states, initial, before):
    if not rest:
        return True
    for o in rest:
        if any(before(other, o) for other in rest if other is not o):
            continue
        right, after = right_answer(
            o.op, o.value, states.get(o.key, initial), o.result, o.end is not None
        )
        others = [other for other in rest if other is not o]
        if right and _completed(others, {**states, o.key: after}, initial, before):
            return True
    return False


def is_linearizable(operations, initial, optional=()):
    """Return whether every operation can have its moment in its interval."""
    operations = list(operations)
    place = {id(o): i for i, o in enumerate(operations)}

    def before(a, b):
        if a.end is None:
            return False
        if a.client == b.client:
            return a.end <= b.start and place[id(a)] < place[id(b)]
        return a.end < b.start

    return some_order(operations, initial, before, optional)


def is_sequential(operations, initial, optional=()):
    """Return whether each client's calls can have come in its own order."""
    operations = list(operations)
    place = {id(o): i for i, o in enumerate(operations)}

    def before(a, b):
        answered = a.end is not None
        return a.client == b.client and answered and place[id(a)] < place[id(b)]

    return some_order(operations, initial, before, optional)
