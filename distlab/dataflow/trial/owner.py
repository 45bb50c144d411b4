"""The process that owns a trial's jobs: it runs them, and tells what it saw."""

import tempfile
from pathlib import Path

from distlab.calls.places import source_lines
from distlab.calls.raised import Told
from distlab.dataflow import MapReduce
from distlab.dataflow.trial.beside import Ended
from distlab.dataflow.trial.learners import Learners
from distlab.dataflow.trial.plain import plain
from distlab.dataflow.trial.stand_ins import (
    Combiner,
    Mapper,
    Partitioner,
    Reducer,
    Trouble,
)
from distlab.errors import TaskFailed
from distlab.faults import KillWorker

__all__ = ["main"]


def main(task: dict) -> dict:
    """Run the jobs of a task; return what was seen.

    That is what each plan's job gave, and what failed, after which none is run.
    """
    inputs = Path(tempfile.gettempdir(), "inputs")
    inputs.mkdir()
    for name, content in task["files"].items():
        path = inputs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    seen = {"tried": [], "failed": None, "packed": None}
    packed, seed = task["packed"], task["seed"]
    try:
        _fit(packed, any(plan["combiner"] for plan in task["plans"]))
        for plan in task["plans"]:
            if plan["partitioner"] and seen["packed"] is None:
                if task["partitioning"] is not None:
                    packed = _with_partitioner(packed, task["partitioning"])
                seen["packed"] = packed.hex()
            seen["tried"].append(_tried(Learners(packed, seed), plan, inputs))
    except TaskFailed as failure:
        kind, said = type(failure.cause).__name__, str(failure.cause)
        if isinstance(failure.cause, Told):
            kind = failure.cause.facts["type"]
        how = {"story": str(failure), "task": failure.task, "kind": kind}
        seen["failed"] = how | {"said": said}
    return seen


def _fit(packed, combines):
    """Refuse functions that cannot be called as they will be.

    Raises: TaskFailed.
    """
    if not _asked(packed, "fitting", "fit", combines):
        facts = {"type": "OneArgument", "message": "", "frames": [], "because": ""}
        story = "The mapper takes one argument, the line."
        raise _failed("fitting", story, Told(facts))


def _with_partitioner(packed, arguments):
    """Return the packed functions with the partitioner that the last of them makes."""
    told = _asked(packed, "partitioning", "make", *arguments)
    return str(told).encode("latin-1", "replace")


def _asked(packed, task, role, *arguments):
    """Return what comes of a function that is called for no worker.

    Raises: TaskFailed.
    """
    try:
        return Learners(packed).call(role, *arguments)
    except Told as told:
        facts = told.facts
        story = facts["message"]
        if facts["type"] not in ("InvalidArgument", "CannotTravel"):
            lines = [f"It raised {facts['type']}: {facts['message']}", ""]
            story = "\n".join([*lines, *source_lines(facts["frames"])])
        raise _failed(task, story, told) from None
    except Ended as ended:
        raise _failed(task, str(ended), ended) from None


def _failed(task, story, cause):
    return TaskFailed(story, task=task, worker=0, cause=cause, trace=None)


def _tried(learners, plan, inputs):
    """Run the job of one plan; return its output and what is known of its run."""
    with tempfile.TemporaryDirectory() as marks:
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
