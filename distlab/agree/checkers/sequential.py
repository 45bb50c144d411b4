"""`check_sequential`: one order for all clients, in which time does not count."""

from distlab.agree.checkers.history_verdict import HistoryVerdict
from distlab.agree.checkers.order_search import find_order
from distlab.agree.checkers.preconditions import (
    deadline_of,
    explains_programs,
    fitting,
    history_of,
    model_of,
    needed,
    nothing_observed,
    nothing_to_judge,
)
from distlab.agree.checkers.shrink import perhaps, shrink
from distlab.agree.sequential_specifications import Model
from distlab.history import History, described

__all__ = ["check_sequential"]


def check_sequential(
    history: History, model: Model, *, within_s: float = 10
) -> HistoryVerdict:
    """Return the verdict on whether one order of all operations explains the results.

    That order keeps each client's own order; real time does not count otherwise. An
    operation of unknown outcome comes anywhere after its client's earlier ones, or
    never, and its client's later ones do not wait for it; one that was refused is left
    out. Keys are not judged alone: two keys, each of them sequentially consistent, need
    not be so together.

    Inconclusive: if no operation completed, if no result depends on an earlier one (a
    fresh store would have returned the same), or if the time was too short. The
    problem is NP-complete in general; if no value is written twice to a key, most of
    the order follows from the values.

    Source: Lamport, How to make a multiprocessor computer, 1979.
    """
    history, model = history_of(history), model_of(model)
    deadline = deadline_of(within_s)
    fitting(history, model)
    history.by_key()
    name = f"sequential {model.name}"
    if why := nothing_to_judge(history):
        return HistoryVerdict("inconclusive", name, why, history)
    done = [operation for operation in history if operation.outcome != "failed"]
    found = find_order(done, model, deadline, timed=False)
    if not found.in_time:
        why = f"{within_s:g} s were too short to try every order."
        return HistoryVerdict("inconclusive", name, why, history)
    if found.order is None:

        def refuted(operations, optional, until):
            unsure = perhaps(operations, optional)
            return find_order(unsure, model, until, timed=False).refuted

        kept = shrink(done, refuted, model, within_s)
        return HistoryVerdict(
            "violated", name, _why(kept), history, smallest=History(kept)
        )
    witness = needed(found.order, model)
    assert explains_programs(witness, history, model)
    if why := nothing_observed(witness, model):
        return HistoryVerdict("inconclusive", name, why, history)
    why = f"One order explains all {len(witness)} operations that took effect."
    return HistoryVerdict("ok", name, why, history, witness=tuple(witness))


def _why(kept):
    if len(kept) == 1:
        return f"No single copy can have given {described(kept[0])}."
    clients = len({operation.client for operation in kept})
    whose = "the client's" if clients == 1 else "each client's"
    return (
        f"No order of these {len(kept)} operations that keeps {whose} own order "
        f"explains every response."
    )
