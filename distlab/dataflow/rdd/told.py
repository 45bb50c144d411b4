"""Where a task failed, in words: which operation, which record, which partition.

The frames of the exception still hold what the learner's function was called with.
"""

import reprlib
from collections.abc import Callable, Mapping
from types import FunctionType

from distlab.dataflow.rdd.graph import Step, functions_in

__all__ = ["where"]


def where(error: BaseException, steps: Mapping[int, Step], last, partition: int) -> str:
    """Return a sentence that says where `error` came up, as far as it can be known."""
    owners = {}
    for step in steps.values():
        for fn in functions_in(step.compute):
            owners.update(dict.fromkeys(_codes(fn), f"{step.name} (RDD {step.id})"))
    for fn in _parts_of(last):
        owners.update(dict.fromkeys(_codes(fn), ""))
    traceback = error.__traceback__
    while traceback is not None:
        frame = traceback.tb_frame
        if frame.f_code in owners:
            return _sentence(owners[frame.f_code], frame, partition)
        traceback = traceback.tb_next
    return f"It was in partition {partition}{_after(steps)}."


def _parts_of(last):
    if isinstance(last, tuple):
        _, choose, aggregator = last
        return [fn for fn in (choose, *(aggregator or ())) if callable(fn)]
    return functions_in(last)


def _codes(fn: Callable):
    """Return the code of a function, and of those it is made of."""
    found = []
    while hasattr(fn, "func"):
        for part in (*fn.args, *fn.keywords.values()):
            if callable(part):
                found += _codes(part)
        fn = fn.func
    if isinstance(fn, FunctionType) and not fn.__module__.startswith("distlab."):
        found.append(fn.__code__)
    elif isinstance(getattr(fn, "__func__", None), FunctionType):
        found.append(fn.__func__.__code__)
    return found


def _sentence(owner, frame, partition):
    code = frame.f_code
    names = code.co_varnames[: code.co_argcount]
    given = [frame.f_locals[name] for name in names if name in frame.f_locals]
    shown = [reprlib.repr(value) for value in given if not hasattr(value, "__next__")]
    at = f"It was in partition {partition}"
    if owner:
        at = f"It was {owner}, partition {partition}"
    return f"{at}, called with {', '.join(shown)}." if shown else f"{at}."


def _after(steps):
    names = [
        f"{step.name} (RDD {step.id})"
        for step in sorted(steps.values(), key=lambda step: step.id)[-1:]
    ]
    return f" of {names[0]}" if names else ""
