"""`check_linearizable`: one copy, and a linearization point for each operation."""

import graphlib
import heapq
import itertools
from collections import defaultdict
from collections.abc import Sequence

from distlab.agree.checkers.history_verdict import HistoryVerdict
from distlab.agree.checkers.order_search import find_order
from distlab.agree.checkers.preconditions import (
    after_of,
    deadline_of,
    explains_programs,
    fitting,
    given_by,
    gives,
    history_of,
    model_of,
    needed,
    nothing_observed,
    nothing_to_judge,
)
from distlab.agree.checkers.shrink import shrink
from distlab.agree.sequential_specifications import Model
from distlab.history import History, called, described, shown
from distlab.trace import Operation
from distlab.units import readable_seconds

__all__ = ["check_linearizable", "explains_in_time"]


def check_linearizable(
    history: History, model: Model, *, within_s: float = 10
) -> HistoryVerdict:
    """Return the verdict on whether every operation can have a linearization point.

    The point is between invocation and response; in the order of these points, one
    after another, the operations must have the results of the model. An operation
    whose response came before another's invocation precedes it; one that ended at the
    very time at which another client's began may be on either side. An operation of
    unknown outcome has its point at any time after its invocation, or never; one that
    was refused has none. Each key is judged alone: linearizability is local.

    Inconclusive: if no operation completed, if no result depends on an earlier one (a
    fresh store would have returned the same), or if the time was too short.
    """
    history, model = history_of(history), model_of(model)
    deadline = deadline_of(within_s)
    fitting(history, model)
    name = f"linearizable {model.name}"
    if why := nothing_to_judge(history):
        return HistoryVerdict("inconclusive", name, why, history)
    parts = [
        [operation for operation in part if operation.outcome != "failed"]
        for part in history.by_key().values()
    ]
    for part in parts:
        if kept := _never_given(part, model):
            return _violated(history, name, model, part, kept, kept[-1].end)
    orders, late = [], 0
    for part in sorted(parts, key=len):
        found = find_order(part, model, deadline)
        if found.order is not None:
            orders.append(needed(found.order, model))
        elif not found.in_time:
            late += 1
        else:
            kept = _shrunk(part, model, found, within_s)
            return _violated(history, name, model, part, kept, found.stuck_s)
    if late:
        which = (
            f"for {late} of {len(parts)} keys" if parts[1:] else "to try every order"
        )
        why = f"{within_s:g} s were too short {which}."
        return HistoryVerdict("inconclusive", name, why, history)
    return _explained(_merged(orders, history), history, name, model)


def _explained(witness, history, name, model):
    why = f"One order explains all {len(witness or ())} operations that took effect."
    if witness is None or not explains_in_time(witness, history, model):
        why = "The times are too coarse: operations of one client overlap in them."
    elif untested := nothing_observed(witness, model):
        why = untested
    else:
        return HistoryVerdict("ok", name, why, history, witness=tuple(witness))
    return HistoryVerdict("inconclusive", name, why, history)


def explains_in_time(
    witness: Sequence[Operation], history: History, model: Model
) -> bool:
    """Return True if the witness explains each client's results and keeps real time.

    The check uses the definition alone, and not the search that found the witness.
    """
    latest = float("-inf")
    for operation in witness:
        latest = max(latest, operation.start)
        if operation.end is not None and operation.end < latest:
            return False
    return explains_programs(witness, history, model)


def _never_given(part, model):
    """Return an operation that found what none before its response can have put there.

    It comes last, after the first that gives the value too late; [] if there is none.
    """
    givers = defaultdict(list)
    for operation in part:
        for value in given_by(operation, model):
            givers[value].append(operation)
    for last in part:
        if last.end is None or after_of(last, model.initial, model) is not None:
            continue
        for value in model.finds(last.op, last.value, last.result):
            for known in givers[value], (o for o in part if gives(o, value, model)):
                first = next((o for o in known if o is not last), None)
                if first is not None and first.start <= last.end:
                    break
            else:
                return [last] if first is None else [first, last]
    return []


def _shrunk(part, model, found, within_s):
    """Return a small sub-history that no order explains, as none explains the part."""

    def refuted(operations, optional, until):
        return find_order(operations, model, until, optional).refuted

    return shrink(part, refuted, model, within_s, found.stuck_s)


def _violated(history, name, model, part, kept, stuck_s):
    why = _why_no_order(kept, part, model, stuck_s)
    return HistoryVerdict("violated", name, why, history, smallest=History(kept))


def _merged(orders, history):
    """Return one order of all keys' operations that keeps each client's own order.

    Each operation stands at the earliest time that the order of its key allows.
    """
    chains, moments = [], {}
    for order in orders:
        latest = float("-inf")
        for operation in order:
            latest = max(latest, operation.start)
            moments[id(operation)] = latest
        chains.append(order)
    for client in history.clients:
        own = [o for o in history.of(client) if id(o) in moments]
        answered = None
        for operation in own:
            chains.append([o for o in (answered, operation) if o is not None])
            answered = operation if operation.end is not None else answered
    return _joined(chains, moments)


def _joined(chains, moments):
    """Return all operations of several chains in one order, or None if there is none.

    The order keeps each chain; of two that may come next, the earlier one does.
    """
    operations = [operation for chain in chains for operation in chain]
    named = {id(operation): operation for operation in operations}
    order, ready, number = [], [], {name: n for n, name in enumerate(named)}
    sorter = graphlib.TopologicalSorter({name: () for name in named})
    for chain in chains:
        for one, two in itertools.pairwise(chain):
            sorter.add(id(two), id(one))
    try:
        sorter.prepare()
    except graphlib.CycleError:
        return None
    while sorter.is_active():
        for name in sorter.get_ready():
            heapq.heappush(ready, (moments[name], number[name], name))
        *_, name = heapq.heappop(ready)
        order.append(named[name])
        sorter.done(name)
    return order


def _why_no_order(
    kept: Sequence[Operation],
    everything: Sequence[Operation],
    model: Model,
    stuck_s: float,
) -> str:
    """Return a sentence: no order explains `kept`, a part of `everything`.

    It blames the operation whose response, at `stuck_s`, no order gets past.
    """
    answered = [operation for operation in kept if operation.end is not None]
    stuck = [operation for operation in answered if operation.end == stuck_s]
    last = max(
        stuck or answered, key=lambda operation: (operation.start, operation.end)
    )
    found = model.finds(last.op, last.value, last.result)

    if after_of(last, model.initial, model) is None:
        for value in found:
            givers = [o for o in everything if o is not last and gives(o, value, model)]
            if not givers:
                return f"{_answer(last)}, which no operation had put there."
            if all(giver.start > last.end for giver in givers):
                return f"{_answer(last)} before {described(givers[0])} was invoked."
    before = [o for o in answered if o.end < last.start]
    # It should have seen an operation other than its value's writer, if there is one.
    other = [o for o in before if not any(gives(o, value, model) for value in found)]
    if len(kept) == 1:
        return f"{_answer(last)}, and nothing before it explains that."
    if not before:
        return f"No order explains these {len(kept)} operations, which all overlap."
    latest = max(other or before, key=lambda operation: operation.end)
    sentence = f"{_answer(last)} after {described(latest)} had completed"
    if isinstance(last.start, float):
        gap = readable_seconds(last.start - latest.end)
        sentence += f", {gap} before it began"
    if len(kept) > 3 or not other:
        sentence += f", and no order explains these {len(kept)} operations"
    return sentence + "."


def _answer(operation):
    words = f"{called(operation.client)}'s {operation.op}"
    if operation.value is not None:
        words += f" of {shown(operation.value)}"
    if operation.key is not None:
        words += (
            f" {'to' if operation.value is not None else 'of'} {shown(operation.key)}"
        )
    if operation.result is None and operation.op in ("acquire", "release"):
        return f"{words} succeeded"
    return f"{words} returned {shown(operation.result)}"
