"""`on_jobs`: MapReduce jobs with a learner's functions, run by several plans.

    check ── functions, files, plans ──▶ a process ── one job after another ──▶ workers
      ◀── parts, pairs, bytes: plain data ──────┘

A plan is a dict with arguments of `MapReduce.run`, and these:

combiner    True if the job has the learner's combiner
in_groups   True if that gets one to three values at a time, and then its results
sizes       the argument of the learner's `make_partitioner`, if the job has one
fails       (name, line) on which the first attempt fails
elsewhere   the files, if the job is also run in another Python, without workers
shows       a pattern that a trace label must match, else the run is inconclusive

`on_workers` runs a program with workers, such as `MapReduce` or a `Context`:

    check ── program, functions, args ──▶ a process ── fork ──▶ its workers
          ◀── plain data: output, counters ──────────

The program is the check's, and runs the library's engine on the learner's functions.
Its processes have ended, and its folder is removed, when the result arrives.
"""

import builtins
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from distlab.checks.kit.grading import Inconclusive, Wrong
from distlab.checks.kit.isolated_call import call, in_another_python
from distlab.checks.kit.ranks import called
from distlab.dataflow import MapReduce
from distlab.errors import InvalidArgument, TaskFailed
from distlab.processes import on_its_own
from distlab.processes.server_handle import ServerHandle

__all__ = ["mapped", "on_jobs", "on_workers"]


def on_workers(
    program: Callable, functions: Any, *args: Any, without: Sequence[str] = ()
) -> Any:
    """Return the result of `program(functions, *args)` in a process that has workers.

    The working directory of the program is an empty folder. The result must be plain
    data: numbers, strings, lists, tuples, sets and dicts.

    Raises: Wrong with the failure, as `call` does.
    """
    return call(_with_workers, functions, program, args, without=without)


def _with_workers(functions, program, args):
    on_its_own()
    ServerHandle.one_for_all()  # workers are forks of this process: all is imported
    around = tempfile.gettempdir()
    with tempfile.TemporaryDirectory(prefix="distlab-check-") as folder:
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        os.chdir(folder)
        try:
            return program(functions, *args)
        finally:
            os.chdir("/")
            os.environ["TMPDIR"] = tempfile.tempdir = around
            ServerHandle.close_all()


_OWN = "combiner", "in_groups", "sizes", "fails", "elsewhere", "shows"
_USUAL = {"workers": 2, "reducers": 2, "split_bytes": 2**20, "backups": False}


def on_jobs(functions: object, files: dict, plans: dict) -> Iterator[tuple[str, dict]]:
    """Yield the name of each plan, and the facts of its job.

    functions: mapper, reducer and, if a plan has them, combiner and make_partitioner.
    files: name -> text. plans: name -> plan.

    Raises: Wrong at the job that failed, with `failure`, its `story`, `combiner` if it
    had one, and `again` if a job of the same functions was done before; or with
    `left` at one that left a file; Inconclusive if no label matches a plan's `shows`.
    """
    tried, failed = on_workers(_tried, functions, files, list(plans.values()))
    for (name, plan), job in zip(plans.items(), tried, strict=False):
        if job["left"]:
            raise Wrong(f"A function wrote {', '.join(job['left'])}.", left=True)
        yield name, job
        shows = plan.get("shows", "")
        if not any(re.match(shows, label) for label in job["labels"]):
            raise Inconclusive(
                f"This did not happen: a job {name}. Run the cell again."
            )
    if failed:
        name, (story, kind, said) = list(plans)[len(tried)], failed
        used = [bool(plan.get("combiner")) for plan in plans.values()]
        raise Wrong(
            f"A job {name}:\n{story}",
            failure=SimpleNamespace(cause=getattr(builtins, kind, RuntimeError)(said)),
            story=story,
            combiner=used[len(tried)],
            again=used[len(tried)] in used[: len(tried)],
        )


def mapped(files: dict, split_bytes: int) -> Iterator[tuple[int, str, str]]:
    """Yield (map task, name, line): a line belongs to the split in which it begins."""
    at = 0
    for name in sorted(files, key=Path):
        for line in files[name].encode().splitlines(keepends=True):
            yield at // split_bytes, name, line.decode().rstrip("\r\n")
            at += len(line)


def _tried(functions, files, plans):
    """Return the results of the jobs before one that failed, and that failure."""
    for name, text in files.items():
        Path("inputs", name).parent.mkdir(parents=True, exist_ok=True)
        Path("inputs", name).write_bytes(text.encode())
    tried = []
    for plan in plans:
        try:
            tried.append(_job(functions, plan))
        except TaskFailed as failed:
            story = str(failed).replace("  Nothing of the job's output is left.", "")
            return tried, (
                story.rstrip(),
                type(failed.cause).__name__,
                str(failed.cause),
            )
    return tried, None


def _job(functions, plan):
    mapper, reducer, combiner, make = (*functions, None, None)[:4]
    how = _USUAL | {key: plan[key] for key in plan if key not in _OWN}
    own = {key: plan.get(key) for key in _OWN}
    combiner = combiner if own["combiner"] else None
    partitioner = there = None
    if own["fails"]:
        mapper = partial(_fails_once, mapper, own["fails"], os.path.abspath("failed"))
        how["skip_bad_records"] = 1  # so that it is tried again
    if own["in_groups"]:
        combiner = partial(_in_groups, combiner)
    if own["sizes"]:
        partitioner = called(make, own["sizes"], how["reducers"])
        if partitioner is None:
            raise InvalidArgument(f"{make.__name__} returned None, and no function.")
    job = MapReduce(mapper, reducer, combiner=combiner, partitioner=partitioner)
    output = job.run("inputs", **how)
    if own["sizes"]:
        keys = [key for key, _ in output]
        there = in_another_python(_numbers, partitioner, keys, how["reducers"])
    elif own["elsewhere"]:
        lines = [line for _, *line in mapped(own["elsewhere"], 1)]
        there = in_another_python(_in_one_process, mapper, reducer, lines)
    return {
        "parts": [list(output.partition(number)) for number in range(how["reducers"])],
        "there": there,
        "pairs": output.counters.shuffled_records,
        "bytes": output.counters.shuffled_bytes,
        "labels": [event.label for event in output.trace.events],
        "left": sorted({*os.listdir()} - {"inputs", "failed"}),
    }


def _fails_once(mapper, at, mark, name, line):
    if (name, line) == at and not os.path.exists(mark):
        os.mkdir(mark)
        raise OSError("the disk did not answer (the check's own doing)")
    return mapper(name, line)


def _in_groups(combiner, key, values):
    values, made = list(values), []
    for size in [1, 2, 3] * len(values):
        group, values = values[:size], values[size:]
        made += _several(combiner(key, iter(group))) if group else []
    yield from _several(combiner(key, iter(made)))


def _several(made):
    return made if hasattr(made, "__next__") else [made]


def _numbers(partitioner, keys, reducers):
    return {key: partitioner(key, reducers) for key in keys}


def _in_one_process(mapper, reducer, lines):
    values = {}
    for name, line in lines:
        for key, value in mapper(name, line):
            values.setdefault(key, []).append(value)
    return {
        key: next(iter(_several(reducer(key, iter(v))))) for key, v in values.items()
    }
