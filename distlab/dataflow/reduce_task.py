"""A reduce task: one partition of every map task's output, merged, into one part."""

import os
from typing import NamedTuple

from distlab.dataflow.functions import Functions, emitted
from distlab.dataflow.runs import Run, in_pieces, merged, narrowed, write
from distlab.dataflow.worker import commit

__all__ = ["Reduced", "reduce_task"]


class Reduced(NamedTuple):
    """What a reduce task leaves: its counts, or the path of a run that is gone."""

    counts: dict
    gone: str | None = None


def reduce_task(
    functions: Functions, temporary: str, final: str, runs: list[Run]
) -> Reduced:
    """Reduce the merge of `runs` into the file `final`.

    temporary: where it is written until it is complete.

    Raises: AtRecord if the reducer fails on a key.
    """

    def entries():
        for key, values in merged(few):
            yield key, emitted(functions.reducer, "reducer", key, values)

    def fewer(key, values):
        combiner = functions.combiner
        return (
            values if combiner is None else emitted(combiner, "combiner", key, values)
        )

    os.makedirs(os.path.dirname(temporary), exist_ok=True)
    try:
        few = narrowed(runs, f"{temporary}.merge", fewer)
        with open(temporary, "wb") as file:
            counts = {"output_records": write(file, in_pieces(entries()))}
            counts["output_bytes"] = file.tell()
    except FileNotFoundError as error:
        if error.filename in {run.path for run in runs}:
            return Reduced({}, error.filename)
        raise
    commit(temporary, final)
    for path in {run.path for run in few} - {run.path for run in runs}:
        os.remove(path)
    return Reduced(counts)
