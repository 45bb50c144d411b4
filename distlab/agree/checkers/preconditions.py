"""Conditions for a verdict: valid arguments, and a history that can tell stores apart.

history_of, model_of, fitting                  validation of the arguments
processor_s, deadline_of                       the time limit, in processor time
nothing_to_judge, nothing_observed             histories that any store could produce
result_of, after_of, given_by, gives           a model's view of one operation
needed, explains_programs                      orders that explain a history
"""

import time
from collections.abc import Iterable, Sequence
from typing import Any

from distlab.agree.sequential_specifications import ANY, Model
from distlab.errors import HistoryError, InvalidArgument
from distlab.history import History, described
from distlab.trace import Operation

__all__ = [
    "after_of",
    "deadline_of",
    "explains_programs",
    "fitting",
    "given_by",
    "gives",
    "history_of",
    "model_of",
    "needed",
    "nothing_observed",
    "nothing_to_judge",
    "processor_s",
    "result_of",
]


def history_of(given: object) -> History:
    """Return `given` as a History; it may be operations, or an object with one."""
    given = getattr(given, "history", given)
    if isinstance(given, History):
        return given
    if not isinstance(given, Iterable):
        raise InvalidArgument(
            f"{given!r} is no history. Read one with History.read(path), or take the "
            "history of a run: outcome.history."
        )
    return History(given)


def model_of(given: object) -> Model:
    """Return the model, given as a class or an object."""
    model = given() if isinstance(given, type) and issubclass(given, Model) else given
    if not isinstance(model, Model):
        raise InvalidArgument(
            f"{given!r} is no model. Say what the store should be, such as Register()."
        )
    if not model.operations:
        raise InvalidArgument(f"{model.name} has no operations: list its words.")
    if model.initial is None:
        raise InvalidArgument(
            f"{model.name} begins with None, which says that an answer cannot be. "
            "Keep the value in brackets, (None,)."
        )
    return model


# A limit in wall-clock time would make verdicts depend on what else the machine does.
processor_s = getattr(time, "thread_time", time.process_time)


def deadline_of(within_s: float) -> float:
    """Return the processor time at which a check gives up, `within_s` from now."""
    if isinstance(within_s, bool) or not isinstance(within_s, int | float):
        raise InvalidArgument(f"within_s is {within_s!r}; say a number of seconds.")
    if not within_s > 0:
        raise InvalidArgument(f"within_s is {within_s}; it takes some time.")
    return processor_s() + within_s


def _unfit(operation: Operation, model: Model) -> str | None:
    """Return a phrase, the reason why a model cannot judge an operation, or None."""
    op, value = operation.op, operation.value
    if op not in model.operations:
        *most, last = model.operations
        known = f"{', '.join(most)} and {last}" if most else last
        return f'is unknown to {model.name}, which knows "{known}"'
    return model.faults(op, value, operation.result if operation.end else ANY)


def fitting(history: History, model: Model):
    """Raise HistoryError for the first operation that a model cannot judge."""
    for operation in history:
        if operation.outcome == "failed":
            continue
        if why := _unfit(operation, model):
            raise HistoryError(
                f"{described(operation)}{history.where(operation)} {why}."
            )


def result_of(operation: Operation) -> Any:
    """Return an operation's result, `ANY` if it has no response."""
    return ANY if operation.end is None else operation.result


def after_of(operation: Operation, state: Any, model: Model) -> Any:
    """Return a model's state after an operation, or None if it cannot follow."""
    return model.step(state, operation.op, operation.value, result_of(operation))


def given_by(operation: Operation, model: Model) -> tuple:
    """Return the values that later operations can find because of this one."""
    if model.observes(operation.op, result_of(operation)):
        return ()
    return model.gives(operation.op, operation.value)


def gives(operation: Operation, value: Any, model: Model) -> bool:
    """Return True if an operation can have put a value there that another one found."""
    if value in given_by(operation, model):
        return True
    changes = not model.observes(operation.op, result_of(operation))
    return changes and model.makes(operation.op, operation.value, value)


def needed(order: Sequence[Operation], model: Model) -> list[Operation]:
    """Return an order that explains its results, without the operations it can spare.

    Those have no response, and need not have taken effect.
    """
    order = list(order)
    for operation in [o for o in order if o.end is None]:
        shorter = [o for o in order if o is not operation]
        if _explained(shorter, model):
            order = shorter
    return order


def _explained(order, model):
    states = {}
    for operation in order:
        before = states.get(operation.key, model.initial)
        states[operation.key] = after_of(operation, before, model)
        if states[operation.key] is None:
            return False
    return True


def explains_programs(
    witness: Sequence[Operation], history: History, model: Model
) -> bool:
    """Return True if a witness is complete, in each client's order, and fits the model.

    The check uses the definition alone, and not the search that found the witness.
    """
    place = {id(operation): number for number, operation in enumerate(history)}
    done = {id(o) for o in history if o.outcome == "ok"}
    allowed = done | {id(o) for o in history if o.outcome == "unknown"}
    given = [id(o) for o in witness]
    if len(set(given)) < len(given) or not done <= set(given) <= allowed:
        return False
    last = {}
    for operation in witness:
        client, number = operation.client, place[id(operation)]
        if operation.end is not None and last.get(client, -1) > number:
            return False
        last[client] = max(last.get(client, -1), number)
    return _explained(witness, model)


def nothing_to_judge(history: History) -> str | None:
    """Return a sentence if no result of a history can be judged, else None."""
    if not len(history):
        return "The history is empty."
    if not any(operation.outcome == "ok" for operation in history):
        return f"None of {len(history)} operations completed."
    return None


def nothing_observed(answered: Sequence[Operation], model: Model) -> str | None:
    """Return a sentence if no result depends on an earlier operation, else None."""
    for operation in answered:
        if operation.end is None:
            continue
        if after_of(operation, model.initial, model) is None:
            return None
    return (
        "No response depends on an operation before it: a store that forgets "
        "everything would have given the same responses."
    )
