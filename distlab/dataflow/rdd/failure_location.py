"""The location of a task's failure, in words: operation, record and partition.

The frames of the exception still hold the arguments of the learner's function.
"""

import reprlib
from collections.abc import Callable, Mapping
from functools import partial
from types import FrameType, FunctionType

from distlab.dataflow.rdd.dependencies import WorkerDataset, functions_in

__all__ = ["learners_frame", "note_record", "where", "with_notes"]


def learners_frame(
    error: BaseException, steps: Mapping[int, WorkerDataset], last: object
) -> tuple[FrameType | None, str]:
    """Return the frame of the learner's function, and the operation it was given to.

    last: the action's function for the records, or the arguments of a shuffle.
    """
    if isinstance(error.__cause__, StopIteration):
        error = error.__cause__  # a generator has made a RuntimeError of it
    owners = {}
    for step in steps.values():
        for fn in functions_in(step.compute):
            owners.update(dict.fromkeys(_codes(fn), f"{step.name} (RDD {step.id})"))
    for fn in functions_in(last):
        owners.update(dict.fromkeys(_codes(fn), ""))
    traceback = error.__traceback__
    while traceback is not None:
        frame = traceback.tb_frame
        if frame.f_code in owners:
            return frame, owners[frame.f_code]
        traceback = traceback.tb_next
    return None, ""


def where(
    frame: FrameType | None,
    owner: str,
    steps: Mapping[int, WorkerDataset],
    partition: int,
) -> str:
    """Return a sentence with the operation, partition and arguments of a failure."""
    if frame is None:
        latest = max(steps.values(), key=lambda step: step.id, default=None)
        of = f" of {latest.name} (RDD {latest.id})" if latest else ""
        return f"It was in partition {partition}{of}."
    code = frame.f_code
    names = code.co_varnames[: code.co_argcount]
    given = [frame.f_locals[name] for name in names if name in frame.f_locals]
    shown = [reprlib.repr(value) for value in given if not hasattr(value, "__next__")]
    at = f"It was {owner}, partition {partition}" if owner else ""
    at = at or f"It was in partition {partition}"
    return f"{at}, called with {', '.join(shown)}." if shown else f"{at}."


def with_notes(step: WorkerDataset, note: Callable[[str], None]) -> WorkerDataset:
    """Return the step, wrapped to note every record or key before processing it."""
    noting = _noting_keys if step.kind == "shuffled" else _noting_records
    compute = partial(noting, step.compute, note, f"{step.name} (RDD {step.id})")
    return step._replace(compute=compute)


def _noting_records(compute, note, what, partition, records):
    return compute(partition, map(partial(note_record, note, what), records))


def note_record(note: Callable[[str], None], what: str, record: object) -> object:
    """Note that a record is given to the operation `what`; return the record."""
    shown = reprlib.repr(record)
    note(f"The last record that it had begun was {shown}, in {what}.")
    return record


def _noting_keys(compute, note, what, partition, chunks):
    return compute(partition, _single(note, what, chunks))


def _single(note, what, chunks):
    """Yield chunks of one key and value each."""
    for keys, values in chunks:
        for key, value in zip(keys, values, strict=True):
            shown = reprlib.repr(key)
            note(f"The last key that it had begun was {shown}, in {what}.")
            yield [key], [value]


def _codes(fn):
    """Return [the code] of a function of the learner's, or [] for one of distlab's."""
    fn = getattr(fn, "__func__", fn)
    ours = not isinstance(fn, FunctionType) or (fn.__module__ or "").startswith(
        "distlab."
    )
    return [] if ours else [fn.__code__]
