"""`call`: one function in a process of its own, which returns plain data."""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import cloudpickle

from distlab.checks.kit.grading import Wrong
from distlab.checks.kit.ranks import on_ranks

__all__ = ["call", "in_another_python"]

_DO = """
import os, pickle, sys
out = os.dup(1)
os.dup2(2, 1)
function, args = pickle.load(sys.stdin.buffer)
os.fdopen(out, "wb").write(pickle.dumps(function(*args)))
"""


def call(
    probe: Callable, function: Any, *args: Any, without: Sequence[str] = ()
) -> Any:
    """Return the result of `probe(function, *args)` in a process of its own.

    function: the learner's, or a value, or a tuple of several. The result must be plain
    data: numbers, strings, lists, tuples, sets and dicts.
    without: modules that contain the solution, which the process does not have.

    Raises: Wrong with the failure if it raises, ends its process or takes too long.
    """
    try:
        report = on_ranks(_alone, function, [args], args=(probe,), without=without)
    except Wrong as wrong:  # one process has no messages to draw
        found = wrong.found.replace("rank 0", "it")
        raise Wrong(found[:1].upper() + found[1:], **wrong.facts) from None
    return report.results[0]


def _alone(comm, function, probe, args):
    return probe(function, *args)


def in_another_python(function: Callable, *args: Any) -> Any:
    """Return, in a probe, `function(*args)` of a Python with another hash seed.

    function: a check's own, which may call a learner's. It is pickled by value, so
    that none of distlab is imported.
    """
    module = sys.modules[function.__module__]
    cloudpickle.register_pickle_by_value(module)
    try:
        task = cloudpickle.dumps((function, args))
    finally:
        cloudpickle.unregister_pickle_by_value(module)
    seed = hash("another seed than this one's") % 2**32
    own = {"PYTHONHASHSEED": str(seed), "PYTHONPATH": os.pathsep.join(sys.path)}
    started = {"env": os.environ | own, "capture_output": True, "check": True}
    done = subprocess.run([sys.executable, "-c", _DO], input=task, **started)
    return pickle.loads(done.stdout)
