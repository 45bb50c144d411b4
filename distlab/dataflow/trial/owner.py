"""The Python that owns a trial's jobs: it runs them, and tells what it saw as JSON."""

import tempfile
from pathlib import Path

from distlab.calls.places import source_lines
from distlab.calls.raised import described
from distlab.calls.travel import pack_functions, unpack
from distlab.dataflow import MapReduce
from distlab.dataflow.trial.guard import (
    Combiner,
    Learners,
    Mapper,
    Partitioner,
    Reducer,
    Trouble,
)
from distlab.dataflow.trial.plain import plain
from distlab.errors import CannotTravel, InvalidArgument, TaskFailed
from distlab.faults import KillWorker
from distlab.processes.apart import answer, task_in

__all__ = ["main"]


def main(folder: str) -> None:
    """Run the jobs of the task in a folder; write what was seen beside it."""
    task = task_in(folder)
    inputs = Path(folder, "inputs")
    inputs.mkdir()
    for name, content in task["files"].items():
        path = inputs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    answer(folder, _answer(task, inputs))


def _answer(task, inputs):
    """Return what each plan's job gave, and what failed, after which none is run."""
    seen = {"tried": [], "failed": None, "packed": None}
    packed = task["packed"]
    try:
        for plan in task["plans"]:
            if plan["partitioner"] and seen["packed"] is None:
                if task["partitioning"] is not None:
                    packed = _with_partitioner(packed, task["partitioning"])
                seen["packed"] = packed.hex()
            seen["tried"].append(_tried(packed, plan, inputs))
    except (TaskFailed, InvalidArgument, CannotTravel) as failure:
        cause = getattr(failure, "cause", failure)
        seen["failed"] = {
            "story": str(failure),
            "task": getattr(failure, "task", ""),
            "kind": type(cause).__name__,
            "said": str(cause),
        }
    return seen


def _with_partitioner(packed, arguments):
    """Return the packed functions with the partitioner that the last of them makes."""
    *functions, make = unpack(packed)
    try:
        partitioner = make(*arguments)
    except Exception as error:
        facts = described(error)
        lines = [f"{_name(make)} raised {facts['type']}: {facts['message']}", ""]
        lines += source_lines(facts["frames"])
        how = {"task": "partitioning", "worker": 0, "cause": error, "trace": None}
        raise TaskFailed("\n".join(lines), **how) from error
    if partitioner is None:
        raise InvalidArgument(f"{_name(make)} returned None, and no function.")
    MapReduce(*functions[:2], partitioner=partitioner)  # refuses what cannot be called
    return pack_functions((*functions, partitioner), "a worker")


def _name(function):
    return getattr(function, "__name__", "the function")


def _tried(packed, plan, inputs):
    """Run the job of one plan; return its output and what is known of its run."""
    with tempfile.TemporaryDirectory() as marks:
        learners = Learners(packed)
        trouble = Trouble(*plan["trouble"], marks) if plan["trouble"] else None
        combiner = Combiner(learners, plan["regrouped"]) if plan["combiner"] else None
        partitioner = Partitioner(learners) if plan["partitioner"] else None
        job = MapReduce(
            Mapper(learners, trouble),
            Reducer(learners),
            combiner=combiner,
            partitioner=partitioner,
        )
        output = job.run(
            inputs,
            workers=plan["workers"],
            reducers=plan["reducers"],
            split_bytes=plan["split_bytes"],
            faults=[KillWorker(*kill) for kill in plan["kills"]],
            skip_bad_records=1 if plan["trouble"] else 0,
        )
        counters = output.counters
        return {
            "parts": [
                [[plain(key), value] for key, value in output.partition(number)]
                for number in range(plan["reducers"])
            ],
            "shuffled": output.shuffled,
            "shuffled_records": counters.shuffled_records,
            "mapped_records": counters.mapped_records,
            "skipped_records": counters.skipped_records,
            "map_tasks": counters.map_tasks,
            "events": [[e.kind, e.rank, e.label] for e in output.trace.events],
        }
