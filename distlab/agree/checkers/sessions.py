"""Session guarantees: the promises to one client, from one of its calls to the next.

They are about versions: every write of a key makes one, and the versions of a key have
an order that all agree on, the initial one first. A history satisfies a guarantee if
there is such an order, of the writes that completed or that reads saw, in which

  read your writes      a read returns no version before one that its client had written
  monotonic reads       a read returns what its client's read before it did, or later
  monotonic writes      a client's writes come in its own order
  writes follow reads   a client's write comes after every version that it had read

The last two are promises to readers. The order of versions cannot be observed, so they
are judged by what a reader misses: a client that has read a write must, from its next
read on, find that write's predecessors, or something later; if both are of one key,
something later than them. A write's predecessors are the versions that its client had
written before (monotonic writes), or had read before (writes follow reads).

Violated therefore means that no order of the versions explains the reads; ok, that one
does. Each guarantee is judged alone and implies none of the others. A write of unknown
outcome is a version if a read saw it, and promises its client nothing. If a value is
written twice to a key, every way in which reads can have seen writes is tried, until
the time is over.

Source: Terry et al., Session guarantees for weakly consistent replicated data, 1994.
"""

from collections import defaultdict
from typing import Any, NamedTuple

from distlab.agree.checkers.history_verdict import HistoryVerdict
from distlab.agree.checkers.partial_order import PartialOrder
from distlab.agree.checkers.reads_from import INITIAL, Explained, check_accesses
from distlab.history import History, shown

__all__ = [
    "check_monotonic_reads",
    "check_monotonic_writes",
    "check_read_your_writes",
    "check_writes_follow_reads",
]


_UNTESTED = "No read is bound by it: nothing that could have been broken was tried."


class _Demand(NamedTuple):
    """A demand that version `later` is not before version `earlier` of the same key.

    strict: they are not the same version either. by: the accesses that demand it.
    """

    earlier: int
    later: int
    strict: bool
    by: tuple[int, ...]


def check_read_your_writes(
    history: History, *, initial: Any = None, within_s: float = 10
) -> HistoryVerdict:
    """Return the verdict: no read returns a version before its client's own writes."""
    return _check("read your writes", _own(writes=True), history, initial, within_s)


def check_monotonic_reads(
    history: History, *, initial: Any = None, within_s: float = 10
) -> HistoryVerdict:
    """Return the verdict: no client's reads go back to an earlier version."""
    return _check("monotonic reads", _own(writes=False), history, initial, within_s)


def check_monotonic_writes(
    history: History, *, initial: Any = None, within_s: float = 10
) -> HistoryVerdict:
    """Return the verdict: a client's write is seen only after those it made before."""
    return _check("monotonic writes", _before(writes=True), history, initial, within_s)


def check_writes_follow_reads(
    history: History, *, initial: Any = None, within_s: float = 10
) -> HistoryVerdict:
    """Return the verdict: a write is seen only after what its client had read."""
    return _check(
        "writes follow reads", _before(writes=False), history, initial, within_s
    )


def _own(writes):
    """Return the demands of a read on its client's own writes, or on its last read."""

    def demands(accesses, seen):
        for number, session, read in _sessions(accesses, seen):
            key = accesses.all[number].key
            for before in reversed(session if read else []):
                access = accesses.all[before]
                if access.key == key and access.writes == writes:
                    version = before if writes else seen[before]
                    yield _Demand(version, seen[number], False, (before, number))
                    if not writes:
                        break

    return demands


def _before(writes):
    """Return the demands of readers on the versions that the writer wrote, or read."""

    def demands(accesses, seen):
        came_before = {}
        for number, session, read in _sessions(accesses, seen):
            if not read:
                earlier = [n for n in session if accesses.all[n].writes == writes]
                versions = [n if writes else seen[n] for n in earlier]
                came_before[number] = [n for n in versions if n != INITIAL]
        return _found_missing(accesses, seen, came_before)

    return demands


def _found_missing(accesses, seen, came_before):
    """Yield the demands of readers that have read a write with predecessors."""
    key = [access.key for access in accesses.all]
    for write, others in came_before.items():
        for other in others:
            if key[other] == key[write]:
                yield _Demand(other, write, True, (other, write))
    asked = defaultdict(dict)  # client, key -> (version, strict) -> its demanders
    for number, _, read in _sessions(accesses, seen):
        if not read:
            continue
        client = accesses.all[number].client
        for (other, strict), by in asked[client, key[number]].items():
            yield _Demand(other, seen[number], strict, (*by, number))
        write = seen[number]
        for other in came_before.get(write, ()):
            strict = key[other] == key[write]
            asked[client, key[other]].setdefault(
                (other, strict), (other, write, number)
            )


def _sessions(accesses, seen):
    """Yield (access, its client's earlier accesses, True for a read), in order."""
    sessions = defaultdict(list)
    for number in accesses.in_use(seen):
        access = accesses.all[number]
        session = sessions[access.client]
        yield number, session, not access.writes
        if access.certain:
            session.append(number)


def _check(name, demands, history, initial, within_s):
    """Return the verdict of a guarantee that makes these demands."""

    def explain(accesses, seen):
        made = list(demands(accesses, seen))
        orders, broken = _versions(accesses, seen, made)
        if any(not accesses.all[demand.by[-1]].writes for demand in made):
            return Explained(broken, lambda: orders)
        return Explained(broken, dict, "" if broken else _UNTESTED)

    why = "One order of the writes of each key explains every read."
    return check_accesses(name, explain, history, initial, within_s, why)


def _versions(accesses, seen, made):
    """Return (key -> writes in an order that meets the demands, ""), or (None, why)."""
    order = PartialOrder(len(accesses.all))
    for demand in made:
        if demand.earlier == demand.later:
            if demand.strict:
                return None, _why(accesses, seen, demand)
        elif demand.later == INITIAL:
            return None, _why(accesses, seen, demand)
        elif demand.earlier != INITIAL:
            order.add(demand.earlier, demand.later)
            circle = demand
    if not order.close():
        return None, _why(accesses, seen, circle)
    orders = defaultdict(list)
    used = set(accesses.in_use(seen))
    for number in order.sorted:
        if number in used and accesses.all[number].writes:
            orders[accesses.all[number].key].append(accesses.all[number].operation)
    return {key: tuple(writes) for key, writes in orders.items()}, ""


def _why(accesses, seen, demand):
    """Return a sentence for a demand that is not met, or contradicts the others."""
    *_, number = demand.by
    access = accesses.all[number]
    if access.writes:
        return f"No order of the writes of {shown(access.key)} explains what was read."
    words = accesses.returned(number)
    if len(demand.by) == 4:
        other, write, _, _ = demand.by
        has = f"{shown(accesses.all[write].value)} of {shown(accesses.all[write].key)}"
        misses = (
            f"{shown(accesses.all[other].value)} of {shown(accesses.all[other].key)}"
        )
        return f"{words}, though it had read {has}, which came after {misses}."
    before = accesses.all[demand.by[0]]
    did = "written" if before.writes else "read"
    return f"{words} after it had {did} {shown(before.value)}."
