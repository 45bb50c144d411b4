"""`Trial`: start the Python that owns the jobs, and read what it saw."""

import json
import linecache
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NamedTuple

from distlab.calls.travel import pack_functions
from distlab.processes.server_handle import trusted_path

__all__ = ["Failed", "Odd", "Plan", "Trial", "TrialTimeout", "Tried"]

_CODE = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from distlab.dataflow.trial.owner import main; main(sys.argv[2])"
)
_END_S = 3.0


@dataclass(frozen=True)
class Plan:
    """One job of a trial.

    combiner, partitioner: whether the job is given them. regrouped: whether the
    combiner is called on small groups, and then on what came of them.
    kills: (worker, task). trouble: (kind, name, line), see `guard.Trouble`.
    """

    workers: int = 2
    reducers: int = 2
    split_bytes: int = 1000
    combiner: bool = False
    regrouped: bool = False
    partitioner: bool = False
    kills: tuple = ()
    trouble: tuple = ()


class Odd(NamedTuple):
    """Stands for a value that is no plain data; it equals nothing that is."""

    kind: str
    shown: str

    def __repr__(self):
        return f"{self.shown} (a {self.kind})"


class Tried(NamedTuple):
    """What was seen of one job.

    parts: (key, value) pairs by partition. shuffled: bytes from each map task to each
    reducer. events: (kind, worker, label) of the trace, in order.
    """

    parts: list
    shuffled: list
    shuffled_records: int
    mapped_records: int
    skipped_records: int
    map_tasks: int
    events: list

    @property
    def pairs(self) -> list:
        """All pairs, partition by partition."""
        return [pair for part in self.parts for pair in part]

    def labels(self, kind: str) -> list[str]:
        """Return the labels of the trace's events of one kind."""
        return [label for of, _, label in self.events if of == kind]


class Failed(NamedTuple):
    """A job that failed, in words, and what raised: the kind and words of it.

    task: such as "map 3", or "partitioning". plan: which plan's job it was.
    """

    story: str
    task: str
    kind: str
    said: str
    plan: int


class TrialTimeout(Exception):
    """A trial's time was over before its jobs had ended."""


@dataclass
class Trial:
    """Functions and files for some jobs.

    functions: (mapper, reducer, combiner, partitioner), of which the last two may be
    None. partitioning: if there is one, the last function is called with these
    arguments, once, and returns the partitioner.
    files: name -> content.

    Raises: CannotTravel.
    """

    functions: Sequence[Callable | None]
    files: dict[str, bytes]
    partitioning: tuple | None = None
    timeout_s: float = 20.0
    packed: bytes = field(init=False)

    def __post_init__(self):
        self.packed = pack_functions(tuple(self.functions), "a worker")

    def run(self, plans: Sequence[Plan], seed: int = 1) -> tuple[list[Tried], Failed]:
        """Run jobs one after another, in a Python with this hash seed.

        A partitioner is made for the first job that has one, and stays the same.
        Returns what was seen of each, up to one that failed, and how that failed.

        Raises: TrialTimeout; RuntimeError if the Python itself fails.
        """
        answer = self._ask(plans, seed)
        tried = [_tried(each) for each in answer["tried"]]
        if answer["packed"] is not None:
            self.packed, self.partitioning = bytes.fromhex(answer["packed"]), None
        failed = answer["failed"]
        if failed is not None:
            failed["story"] = _in_cells(failed["story"])
            failed = Failed(**failed, plan=len(tried))
        return tried, failed

    def _ask(self, plans, seed):
        """Return the owner's answer; its folder and its workers are gone with it."""
        with tempfile.TemporaryDirectory(prefix="distlab-") as folder:
            task = {
                "packed": self.packed,
                "partitioning": self.partitioning,
                "files": self.files,
                "plans": [asdict(plan) for plan in plans],
                "cells": {name: linecache.getlines(name) for name in _cells()},
            }
            Path(folder, "task").write_bytes(pickle.dumps(task))
            said = self._wait_for_owner(folder, seed)
            answer = Path(folder, "answer")
            if not answer.exists():
                raise RuntimeError(f"the Python that owns the jobs said: {said}")
            return json.loads(answer.read_text())

    def _wait_for_owner(self, folder, seed):
        """Wait until the owner has ended; return the last that it wrote as an error."""
        owner = subprocess.Popen(
            [sys.executable, "-P", "-c", _CODE, json.dumps(trusted_path()), folder],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONHASHSEED": str(seed), "TMPDIR": folder},
        )
        try:
            _, said = owner.communicate(timeout=self.timeout_s)
        except subprocess.TimeoutExpired:
            raise TrialTimeout from None
        finally:
            _end(owner)
        return said.decode(errors="replace").strip()[-500:]


def _end(owner):
    """End the owner, which ends its workers; kill it if it does not."""
    for number in (signal.SIGINT, signal.SIGKILL):
        if owner.poll() is None:
            owner.send_signal(number)
            try:
                owner.communicate(timeout=_END_S)
            except subprocess.TimeoutExpired:
                continue


def _cells():
    """Return file name -> what a notebook calls it, of each cell that was run."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is None:
        return {}
    named = {name: shell.compile.format_code_name(name) for name in linecache.cache}
    return {name: " ".join(words) for name, words in named.items() if words}


def _in_cells(story):
    """Return a failure's story with cells called what the notebook calls them."""
    for name, cell in _cells().items():
        story = story.replace(f"{os.path.basename(name)}, line", f"{cell}, line")
    return story


def _tried(told):
    parts = [
        [(_value(key), _value(value)) for key, value in part] for part in told["parts"]
    ]
    return Tried(**(told | {"parts": parts}))


def _value(told):
    """Return a value that `guard.plain` described."""
    if isinstance(told, list):
        return [_value(part) for part in told]
    if isinstance(told, dict):
        if "tuple" in told:
            return tuple(map(_value, told["tuple"]))
        return Odd(**told)
    return told
