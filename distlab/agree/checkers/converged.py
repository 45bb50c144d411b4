"""`check_converged`: all clients read the same some time after the last write."""

from collections.abc import Hashable
from typing import Any

from distlab.agree.checkers.history_verdict import HistoryVerdict
from distlab.agree.checkers.preconditions import history_of, nothing_to_judge
from distlab.errors import InvalidArgument
from distlab.history import History, called, described, shown
from distlab.units import readable_seconds

__all__ = ["check_converged"]

_NAME = "converged"


def check_converged(history: History, *, quiet_s: float = 1.0) -> HistoryVerdict:
    """Return the verdict on whether the clients' last reads, after all writes, agree.

    quiet_s: seconds after the last write of a key from which its reads count; by then
    no message may be in flight, also of writes that never got a response. A write of
    unknown outcome counts from its invocation on. Every operation but "read" is a write
    here.

    Of each key and client the last read that counts must be the same for all. If every
    write of the key is a "write" or "cas", it must also be a value that was written.
    Tuples, lists and sets are siblings, unless they were written as they are: they are
    compared as sets, and each must have been written.

    Inconclusive: if there is no key that two clients read after `quiet_s`.
    """
    history = history_of(history)
    if isinstance(quiet_s, bool) or not isinstance(quiet_s, int | float) or quiet_s < 0:
        raise InvalidArgument(f"quiet_s is {quiet_s!r}; say a number of seconds.")
    if why := nothing_to_judge(history):
        return HistoryVerdict("inconclusive", _NAME, why, history)
    agreed, written = [], False
    for key, part in history.by_key().items():
        writes = [o for o in part if o.op != "read" and o.outcome != "failed"]
        if not writes:
            continue
        written = True
        quiet = quiet_s + max(o.start if o.end is None else o.end for o in writes)
        last = _last_reads(part, quiet)
        why = _disagreement(key, last, writes)
        if why:
            kept = History([*_needed(why[1], writes), *why[1]])
            return HistoryVerdict("violated", _NAME, why[0], history, smallest=kept)
        if len(last) > 1:
            agreed += last
    if not agreed:
        why = (
            "There is no write."
            if not written
            else (
                "No two clients read the same key later than "
                f"{readable_seconds(quiet_s)} after its last write."
            )
        )
        return HistoryVerdict("inconclusive", _NAME, why, history)
    keys = len({_one(read.key) for read in agreed})
    why = f"The last reads agree, on {keys} key{'' if keys == 1 else 's'}."
    return HistoryVerdict("ok", _NAME, why, history, witness=tuple(agreed))


def _last_reads(part, quiet):
    """Return each client's last completed read that began at `quiet` or later."""
    reads = [
        o for o in part if o.op == "read" and o.outcome == "ok" and o.start >= quiet
    ]
    return list({read.client: read for read in reads}.values())


def _disagreement(key, last, writes):
    """Return (a sentence on the disagreement, the reads that show it), or None."""
    values = {_one(value) for o in writes for value in _given(o)}
    told_all = all(o.op in ("write", "cas") for o in writes)
    found = [_seen(read, values) for read in last]
    for read, seen in zip(last, found, strict=True):
        if seen != found[0]:
            first = last[0]
            return (
                f"{called(first.client)}'s last read of {shown(key)} returned "
                f"{shown(first.result)}, and {called(read.client)}'s "
                f"{shown(read.result)}.",
                [first, read],
            )
        strange = [value for value in seen if value not in values]
        if told_all and (strange or not seen):
            lost = all(_is_initial(value) for value in strange)
            certain = any(o.outcome == "ok" and o.op == "write" for o in writes)
            if lost and not certain:
                continue
            return f"{described(read)}, which was never written.", [read]
    return None


def _is_initial(value):
    return value == _one(None)


def _needed(reads, writes):
    """Return the writes whose values the reads returned."""
    values = set().union(*(_seen(read, set()) for read in reads))
    values |= {_one(read.result) for read in reads}
    return [o for o in writes if values & {_one(value) for value in _given(o)}]


def _given(operation):
    if operation.op == "cas" and isinstance(operation.value, tuple | list):
        return operation.value[1:]
    return (operation.value,)


def _seen(read, values) -> frozenset[Hashable]:
    """Return the values that a read returned: several if it returned siblings."""
    one = _one(read.result)
    siblings = isinstance(read.result, tuple | list | set | frozenset)
    if siblings and one not in values:
        return frozenset(_one(value) for value in read.result)
    return frozenset([one])


def _one(value: Any) -> Hashable:
    """Return the hashable form that stands for a value: of a list or dict its repr."""
    try:
        hash(value)
    except TypeError:
        return ("", repr(value))
    return value
