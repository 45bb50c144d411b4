"""A reduce task: one partition of every map task's output, merged, into one part."""

import os
from typing import NamedTuple

from distlab.dataflow.mapreduce.sorted_runs import Run, fan_in, merged, narrowed, write
from distlab.dataflow.record_notes import noting
from distlab.dataflow.user_functions import Functions, applied, noted_keys
from distlab.dataflow.worker import commit

__all__ = ["Reduced", "reduce_task"]


class Reduced(NamedTuple):
    """The result of a reduce task: its counts, or the path of a missing run."""

    counts: dict
    gone: str | None = None


def reduce_task(
    functions: Functions,
    temporary: str,
    final: str,
    runs: list[Run],
    *,
    memory_bytes: int,
    note: str | None = None,
) -> Reduced:
    """Reduce the merge of `runs` into the file `final`.

    temporary: its path until it is complete. note: path of a note to keep.

    Raises: AtRecord if the reducer fails on a key.
    """
    with noting(note) as say:
        if say is not None:
            functions = noted_keys(functions, say)
        return _reduced(functions, temporary, final, runs, memory_bytes)


def _reduced(functions, temporary, final, runs, memory_bytes):
    for path in (temporary, final):
        os.makedirs(os.path.dirname(path), exist_ok=True)
    try:
        merge = f"{temporary}.merge"
        few = narrowed(runs, fan_in(memory_bytes), merge, functions.combined)
        with open(temporary, "wb") as file:
            reduced = applied(functions.reducer, "reducer", merged(few))
            counts = {"output_records": write(file, reduced)}
            counts["output_bytes"] = file.tell()
    except FileNotFoundError as error:
        if error.filename in {run.path for run in runs}:
            return Reduced({}, error.filename)
        raise
    commit(temporary, final)
    for path in {run.path for run in few} - {run.path for run in runs}:
        os.remove(path)
    return Reduced(counts)
