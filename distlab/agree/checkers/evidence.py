"""What a history must hold for a verdict to mean anything, and a witness to be one."""

from collections.abc import Sequence
from typing import Any

from distlab.agree.models import ANY, Model
from distlab.history import History
from distlab.trace import Operation

__all__ = [
    "after_of",
    "explains_programs",
    "given_by",
    "needed",
    "nothing_to_judge",
    "nothing_told",
]


def after_of(operation: Operation, state: Any, model: Model) -> Any:
    """Return a model's state after an operation, or None if it cannot be."""
    result = ANY if operation.end is None else operation.result
    return model.step(state, operation.op, operation.value, result)


def given_by(operation: Operation, model: Model) -> tuple:
    """Return the values that can be found because of an operation so answered."""
    result = ANY if operation.end is None else operation.result
    if model.observes(operation.op, result):
        return ()
    return model.gives(operation.op, operation.value)


def needed(order: Sequence[Operation], model: Model) -> list[Operation]:
    """Return an order that explains its answers without what it does not need.

    Left out is what was never answered, and need not have taken effect.
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
    """Return whether a witness is one: complete, in each client's order, as modelled.

    It looks at the definition alone, and not at how the witness was found.
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
    """Return in words why no answer of a history can be judged, if none can."""
    if not len(history):
        return "The history is empty."
    if not any(operation.outcome == "ok" for operation in history):
        return f"None of {len(history)} operations was done and answered."
    return None


def nothing_told(answered: Sequence[Operation], model: Model) -> str | None:
    """Return in words that no answer tells of an operation before it, if none does."""
    for operation in answered:
        if operation.end is None:
            continue
        if after_of(operation, model.initial, model) is None:
            return None
    return (
        "No answer tells of an operation before it: a store that forgets everything "
        "would have answered the same."
    )
