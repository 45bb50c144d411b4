"""Which orders of operations explain what clients were told: all of them, by force.

What the checks take for true. `brute_order` looks at every order, so that it is right
by its looks; `searched` remembers where it has been, and is held against the first in
tests. A register holds None until something is written.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations, permutations

from distlab.trace import Operation

__all__ = ["before", "brute_order", "effective", "explains", "searched"]


def before(a: Operation, b: Operation) -> bool:
    """Whether a had ended when b began; at one and the same moment it had not."""
    return a.end is not None and a.end < b.start


def effective(operations: Sequence[Operation]) -> Iterator[list[Operation]]:
    """Yield each choice of operations that may have taken effect.

    Those that are ok have, those that failed have not, and each unknown one may have.
    """
    sure = [one for one in operations if one.outcome == "ok"]
    maybe = [
        one for one in operations if one.outcome == "unknown" and one.op == "write"
    ]
    for count in range(len(maybe) + 1):
        for some in combinations(maybe, count):
            yield [*sure, *some]


def explains(order: Sequence[Operation]) -> bool:
    """Whether each read returns what was written last before it."""
    value = None
    for one in order:
        if one.op == "write":
            value = one.value
        elif one.result != value:
            return False
    return True


def brute_order(operations: Sequence[Operation]) -> list[Operation] | None:
    """Return an order that makes the operations linearizable, if there is one."""
    for some in effective(operations):
        for order in permutations(some):
            if explains(order) and _keeps_time(order):
                return list(order)
    return None


def _keeps_time(order):
    latest = float("-inf")
    for one in order:
        if one.end is not None and one.end < latest:
            return False
        latest = max(latest, one.start)
    return True


def searched(operations: Sequence[Operation]) -> bool:
    """Whether the operations are linearizable; also for many of them.

    A state is what has taken effect, as bits, and the value then. An unknown read says
    nothing, and is left out.
    """
    kept = [
        one
        for one in sorted(operations, key=lambda one: one.start)
        if one.outcome == "ok" or (one.outcome, one.op) == ("unknown", "write")
    ]
    waits_for = [
        sum(1 << place for place, other in enumerate(kept) if before(other, one))
        for one in kept
    ]
    needed = sum(1 << place for place, one in enumerate(kept) if one.outcome == "ok")
    todo, seen = [(0, None)], {(0, None)}
    while todo:
        done, value = todo.pop()
        if done & needed == needed:
            return True
        for place, one in enumerate(kept):
            if waits_for[place] & ~done & needed:
                break  # what starts later waits for the same, and for more
            if done >> place & 1 or (one.op == "read" and one.result != value):
                continue
            state = done | 1 << place, one.value if one.op == "write" else value
            if state not in seen:
                seen.add(state)
                todo.append(state)
    return False
