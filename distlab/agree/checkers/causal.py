"""`check_causal`: no client sees an effect before its cause.

    client 0   write x 1                       x 1 is a cause of y 2: it was read
    client 1              read x 1  write y 2                    before y 2
    client 2                                   read y 2  read x nothing: not causal

The model is causal memory, "CM" of Bouajjani et al.: for each client there is an
order of all writes and of its own reads that keeps the causal order, and in which each
of its reads returns the last write before it. The causal order is what follows, over
any number of steps, from each client's own order and from reads that saw writes.
Different clients may see writes that are no causes of each other in different orders,
so replicas need not converge (that would be "CCv", the causal+ of COPS); and a client
does not go back (without that it would be "CC").

Where no value is written twice to a key, this is decided in polynomial time, by looking
for bad patterns (theorem 5 there: ThinAirRead, CyclicHB and WriteHBInitRead, which
contain the others). Else each way in which reads can have seen writes is tried, until
the time is over.

An operation of unknown outcome comes after its client's earlier operations, and its
client's later ones need not come after it. If no read saw it, it may be left out.

Source: Ahamad et al., Causal memory, 1995; Bouajjani, Enea, Guerraoui and Hamza, On
verifying causal consistency, 2017.
"""

from typing import Any, NamedTuple

from distlab.agree.checkers.history_verdict import HistoryVerdict
from distlab.agree.checkers.partial_order import PartialOrder, bits
from distlab.agree.checkers.reads_from import INITIAL, Explained, check_accesses
from distlab.history import History, called, shown

__all__ = ["check_causal"]

_NAME = "causal memory"


class _Bad(NamedTuple):
    """A bad pattern: a read, the write it saw, and a later write that its client knew.

    All None: the causal order has a cycle.
    """

    read: int | None = None
    saw: int | None = None
    missed: int | None = None


def check_causal(
    history: History, *, initial: Any = None, within_s: float = 10
) -> HistoryVerdict:
    """Return the verdict on the reads and writes of a history under causal memory.

    initial: the value of a key before its first write. This module's docstring defines
    the model and the histories that can be judged.

    Inconclusive: if no operation completed, if no read saw a write, or if values are
    written more than once and the time was too short to try every assignment of writes.
    """
    why = "Each client can have seen all writes in an order that keeps every cause."
    return check_accesses(_NAME, _explain, history, initial, within_s, why)


def _explain(accesses, seen):
    """Return causal memory's judgement of reads that saw these writes."""
    bad = _bad_pattern(accesses, seen)
    if bad is not None:
        return Explained(_why(accesses, bad))
    untested = "" if set(seen.values()) - {INITIAL} else "No read saw a write."
    return Explained("", lambda: _views(accesses, seen), untested)


def _bad_pattern(accesses, seen):
    """Return the bad pattern that arises if reads saw these writes, or None."""
    causes = _causes(accesses, seen)
    if not causes.close():
        return _Bad()
    for client in _readers(accesses):
        _, bad = _known(accesses, seen, causes, client)
        if bad is not None:
            return bad
    return None


def _readers(accesses):
    return dict.fromkeys(accesses.all[number].client for number in accesses.reads)


def _causes(accesses, seen):
    """Return the causal order, not closed yet."""
    used = accesses.in_use(seen)
    saw = [(write, read) for read, write in seen.items() if write != INITIAL]
    return PartialOrder(len(accesses.all), accesses.program_order(used) + saw)


def _known(accesses, seen, causes, client):
    """Return (order in which a client must have seen writes, bad pattern or None).

    It is the causal order, and this: a write that the client knew of when it read
    another one of the same key came before that other one.
    """
    order, writes = causes.copy(), {}
    for number in accesses.in_use(seen):
        if accesses.all[number].writes:
            key = accesses.all[number].key
            writes[key] = writes.get(key, 0) | 1 << number
    own = [number for number in accesses.reads if accesses.all[number].client == client]
    while True:
        added = None
        for read in own:
            saw = seen[read]
            others = order.before[read] & writes.get(accesses.all[read].key, 0)
            if saw == INITIAL:
                if others:
                    return order, _Bad(read, saw, next(bits(others)))
                continue
            for other in bits(others & ~(1 << saw) & ~order.before[saw]):
                order.add(other, saw)
                added = _Bad(read, saw, other)
        if added is None:
            return order, None
        if not order.close():
            return order, added


def _views(accesses, seen):
    """Return client -> an order in which it can have seen all writes, checked again."""
    causes = _causes(accesses, seen)
    causes.close()
    views = {}
    for client in dict.fromkeys(access.client for access in accesses.all):
        order, _ = _known(accesses, seen, causes, client)
        mine = {
            number
            for number in accesses.in_use(seen)
            if accesses.all[number].writes or accesses.all[number].client == client
        }
        place = {number: at for at, number in enumerate(order.sorted)}
        view, taken = [], 0
        for read in [n for n in accesses.reads if n in mine]:
            past = order.before[read] & ~taken
            view += sorted((n for n in bits(past) if n in mine), key=place.get)
            view.append(read)
            taken |= past | 1 << read
        view += [n for n in order.sorted if n in mine and not taken >> n & 1]
        _check_view(accesses, seen, causes, view)
        # A compare-and-set is two accesses: it stands where its write is.
        last = {
            id(accesses.all[n].operation): accesses.all[n].operation for n in view[::-1]
        }
        views[client] = tuple(last.values())[::-1]
    return views


def _check_view(accesses, seen, causes, view):
    """Assert that a view meets the definition."""
    latest, passed = {}, 0
    for number in view:
        access = accesses.all[number]
        assert causes.before[number] & sum(1 << n for n in view) & ~passed == 0
        if access.writes:
            latest[access.key] = number
        else:
            assert latest.get(access.key, INITIAL) == seen[number]
        passed |= 1 << number


def _why(accesses, bad):
    """Return a sentence that describes the bad pattern."""
    if bad.read is None:
        return (
            "Reads saw writes that were made only because of them: causes in a circle."
        )
    read, missed = accesses.all[bad.read], accesses.all[bad.missed]
    by = "its own" if missed.client == read.client else f"{called(missed.client)}'s"
    later = f"{by} later write of {shown(missed.value)}"
    returned = accesses.returned(bad.read)
    return f"{returned}, though {called(read.client)} knew by then of {later}."
