"""The jobs in which a sample has to come out the same, and the proof of each fault."""

from collections.abc import Callable
from typing import NamedTuple

from distlab.dataflow.trial import Plan, Tried
from distlab.grading.jobs.texts import lines_of, named_lines

__all__ = ["SPLIT", "Run", "runs_on"]

SPLIT = 12_000
_FINE = 2600


class Run(NamedTuple):
    """A job. what: what befalls it. hit: whether that can be seen to have happened."""

    plan: Plan
    what: str
    hit: Callable[[Tried], bool]


def runs_on(files: dict[str, bytes]) -> dict[str, Run]:
    """Return the jobs by name; each is to give what the first one gives."""
    maps = -(-sum(map(len, files.values())) // SPLIT)
    own = {"split_bytes": SPLIT, "combiner": True}
    line = _line_in_a_split(files)
    # With one reduce task more than maps, one of two workers has its (maps + 1)-th task
    # after all maps are done, whoever does which.
    kills = (0, maps + 1), (1, maps + 1)
    cut = {"split_bytes": _FINE, "combiner": True, "regrouped": True}
    fails = Plan(1, trouble=("fails", *line), **own)
    reduce = Plan(2, maps + 1, kills=kills, **own)
    waits = Plan(2, trouble=("waits", *line), **own)
    return {
        "clean": Run(Plan(1, split_bytes=SPLIT), "a clean run", _always),
        "combiner": Run(Plan(1, **own), "a clean run with your combiner", _always),
        "workers": Run(Plan(3, **own), "a run on three workers", _always),
        "cut": Run(Plan(2, 3, **cut), "smaller splits", _always),
        "again": Run(fails, "a map task failed half-way and was tried again", _again),
        "map": Run(
            Plan(2, kills=((1, 1),), **own), "a worker killed in a map", _in_map
        ),
        "reduce": Run(reduce, "a worker killed in a reduce", _in_reduce),
        "backup": Run(waits, "a backup task beside a slow one", _backup),
    }


def _line_in_a_split(files):
    """Return (name, line) of one that is there once, three quarters into a split."""
    at, every = 0, list(named_lines(files))
    for name, content in files.items():
        lines = lines_of(content)
        for line in lines:
            late = at > SPLIT and at % SPLIT > 3 * SPLIT // 4
            if late and line and every.count((name, line)) == 1:
                return name, line
            at += len(line) + 1
        at += len(content) - sum(len(line) + 1 for line in lines)
    raise ValueError("these files have too few lines to cut")


def _always(job):
    return True


def _again(job):
    done = job.labels("work")
    tried_again = any(label.endswith(", attempt 2") for label in done)
    return tried_again and not job.skipped_records and not job.labels("fault")


def _lost(job, kind):
    return any(
        label.startswith(kind) and label.endswith(", lost")
        for label in job.labels("work")
    )


def _in_map(job):
    return "kill" in job.labels("fault") and _lost(job, "map")


def _in_reduce(job):
    return "kill" in job.labels("fault") and _lost(job, "reduce")


def _backup(job):
    workers = {}
    for kind, worker, label in job.events:
        if kind == "work" and label.startswith("map"):
            workers.setdefault(label.partition(",")[0], set()).add(worker)
    return not job.labels("fault") and any(len(own) > 1 for own in workers.values())
