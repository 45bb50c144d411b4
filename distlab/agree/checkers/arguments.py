"""What every checker looks at first: is this a history, and one of this model?"""

from collections.abc import Iterable

from distlab.agree.models import ANY, Model
from distlab.errors import HistoryError, InvalidArgument
from distlab.history import History, told
from distlab.trace import Operation

__all__ = ["history_of", "model_of", "seconds_of", "unfit"]


def history_of(given: object) -> History:
    """Return the history that was given: one, or operations, or what has a history."""
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
    """Return the model that was given, as a class or an object."""
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


def seconds_of(within_s: float) -> float:
    """Return the limit, if it is a time."""
    if isinstance(within_s, bool) or not isinstance(within_s, int | float):
        raise InvalidArgument(f"within_s is {within_s!r}; say a number of seconds.")
    if not within_s > 0:
        raise InvalidArgument(f"within_s is {within_s}; it takes some time.")
    return within_s


def unfit(operation: Operation, model: Model) -> str | None:
    """Return in words why a model cannot judge an operation, or None if it can."""
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
        if why := unfit(operation, model):
            raise HistoryError(f"{told(operation)}{history.where(operation)} {why}.")
