"""Usual mistakes in a check of one register, each written out, to know them by.

Whose answers to thousands of histories are all those of one of these has had its idea.
"""

from collections.abc import Callable, Sequence
from itertools import chain

from distlab.grading.agreement.orders import before, explains, searched

__all__ = ["REAL_TIME_IDEAS", "UNKNOWN_IDEAS"]


def _writes(operations):
    return [one for one in operations if one.op == "write"]


def _reads(operations):
    return [one for one in operations if one.op == "read"]


def _only_written(operations):
    values = {None, *(one.value for one in _writes(operations))}
    return all(one.result in values for one in _reads(operations))


def _each_clients_order(operations):
    return any(explains(order) for order in _interleaved(_by_client(operations)))


def _by_client(operations):
    queues = {}
    for one in sorted(operations, key=lambda one: one.start):
        queues.setdefault(one.client, []).append(one)
    return list(queues.values())


def _interleaved(queues):
    if not any(queues):
        yield []
    for place, queue in enumerate(queues):
        if queue:
            rest = [*queues[:place], queue[1:], *queues[place + 1 :]]
            yield from ([queue[0], *order] for order in _interleaved(rest))


def _at(write: str, read: str) -> Callable:
    """Return the idea that each effect is at a fixed end of its operation."""

    def idea(operations):
        moment = {"write": write, "read": read}
        order = sorted(operations, key=lambda one: getattr(one, moment[one.op]))
        return explains(order)

    return idea


def _each_read_alone(operations):
    """The idea that what one read returned says nothing about another."""
    return all(_possible(one, _writes(operations)) for one in _reads(operations))


def _possible(read, writes):
    earlier = [one for one in writes if before(one, read)]
    if read.result is None:
        return not earlier
    return any(
        one.value == read.result
        and not before(read, one)
        and not any(before(one, other) for other in earlier)
        for one in writes
    )


def _last_that_ended(operations):
    """The idea that a read returns the last value whose write had ended."""
    for read in _reads(operations):
        earlier = [one for one in _writes(operations) if before(one, read)]
        last = max(earlier, key=lambda one: one.end, default=None)
        if read.result != (last.value if last else None):
            return False
    return True


def _touching(operations):
    """The idea that one that ends at a moment precedes one that begins at it."""
    ends = {one.end for one in operations}
    moved = [
        one._replace(start=one.start + 0.5) if one.start in ends else one
        for one in operations
    ]
    return searched(moved)


def _no_initial(operations):
    return _never_none(operations) and searched(operations)


def _never_none(operations):
    return all(one.result is not None for one in _reads(operations))


def _any_none(operations):
    return searched([o for o in operations if o.op == "write" or o.result is not None])


def _greedy(key: Callable) -> Callable:
    """Return the idea to take what fits, and never to take it back."""

    def idea(operations):
        left, value = sorted(operations, key=key), None
        while left:
            for one in left:
                late = any(before(other, one) for other in left)
                if not late and (one.op == "write" or one.result == value):
                    break
            else:
                return False
            left.remove(one)
            value = one.value if one.op == "write" else value
        return True

    return idea


def _one_write_each(operations):
    """The idea that a value tells which write it is from."""
    last = {one.value: one for one in _writes(operations)}
    return searched([one for one in operations if one.op == "read"] + [*last.values()])


REAL_TIME_IDEAS: dict[str, Sequence[Callable]] = {
    "written": (_only_written, lambda o: _only_written(o) and _never_none(o)),
    "clients' order": (_each_clients_order,),
    "start": (_at("start", "start"),),
    "end": (_at("end", "end"),),
    "fixed": (_at("start", "end"), _at("end", "start")),
    "overlapping write": (_last_that_ended,),
    "each read alone": (_each_read_alone,),
    "touching": (_touching,),
    "initial": (_no_initial, _any_none),
    "greedy": (
        _greedy(lambda one: one.start),
        _greedy(lambda one: one.end),
        _greedy(lambda one: (one.op, one.start)),
        _greedy(lambda one: (one.op, one.end)),
        _greedy(lambda one: (one.op == "read", one.start)),
    ),
    "one write each": (_one_write_each,),
}


# ---- of unknown outcome, and with a memory ---------------------------------------


def _last_s(operations):
    return max(chain(*((o.start, o.end or o.start) for o in operations)), default=0) + 1


def _unknown_write(one):
    return (one.op, one.outcome) == ("write", "unknown")


def _without_unknown(operations):
    return searched([one for one in operations if one.outcome != "unknown"])


def _at_any_time(operations):
    return searched(
        [
            one._replace(start=float("-inf")) if _unknown_write(one) else one
            for one in operations
        ]
    )


def _failed_are_done(operations):
    return searched(
        [o._replace(outcome="ok") if _failed_write(o) else o for o in operations]
    )


def _failed_may_be_done(operations):
    return searched(
        [
            o._replace(outcome="unknown", end=None) if _failed_write(o) else o
            for o in operations
        ]
    )


def _failed_write(one):
    return (one.op, one.outcome) == ("write", "failed")


def _all_are_done(operations):
    return _failed_are_done(_answered_too(operations))


def _answered_too(operations):
    last = _last_s(operations)
    return [
        o._replace(end=last, outcome="ok") if _unknown_write(o) else o
        for o in operations
    ]


def _reads_told_none(operations):
    """The idea that a read that was not answered has returned None."""
    last = _last_s(operations)
    return searched(
        [
            o._replace(outcome="ok", end=o.end or last)
            if o.op == "read" and o.outcome != "ok"
            else o
            for o in operations
        ]
    )


UNKNOWN_IDEAS: dict[str, Sequence[Callable]] = {
    "never": (_without_unknown,),
    "any time": (_at_any_time,),
    "failed done": (_failed_are_done, _failed_may_be_done),
    "all done": (_all_are_done,),
    "reads told none": (_reads_told_none,),
}
