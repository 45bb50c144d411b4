"""Why no order explains some operations, in a sentence."""

from collections.abc import Sequence

from distlab.agree.checkers.evidence import after_of, given_by
from distlab.agree.models import Model
from distlab.history import called, shown, told
from distlab.trace import Operation
from distlab.units import readable_seconds

__all__ = ["why_no_order"]


def why_no_order(
    kept: Sequence[Operation], everything: Sequence[Operation], model: Model
) -> str:
    """Return the sentence for `kept`, those of `everything` that are enough."""
    answered = [operation for operation in kept if operation.end is not None]
    last = max(answered, key=lambda operation: (operation.start, operation.end))
    found = model.finds(last.op, last.value, last.result)
    if after_of(last, model.initial, model) is None:
        for value in found:
            givers = [o for o in everything if value in given_by(o, model)]
            if not givers:
                return f"{_answer(last)}, which nobody had ever put there."
            if all(giver.start > last.end for giver in givers):
                return f"{_answer(last)} before {told(givers[0])} was called."
    before = [o for o in answered if o.end < last.start]
    # What it should have seen is not what gave it its value, if there is anything else.
    other = [o for o in before if not set(found) & set(given_by(o, model))]
    if len(kept) == 1:
        return f"{_answer(last)}, and nothing before it explains that."
    if not before:
        return f"No order explains these {len(kept)} operations, all at the same time."
    latest = max(other or before, key=lambda operation: operation.end)
    sentence = f"{_answer(last)} after {told(latest)} had been answered"
    if isinstance(last.start, float):
        gap = readable_seconds(last.start - latest.end)
        sentence += f", {gap} before it began"
    if len(kept) > 3:
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
    return f"{words} returned {shown(operation.result)}"
