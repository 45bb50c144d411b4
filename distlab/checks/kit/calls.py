"""`call`: one function, in a process of its own; plain data comes back."""

from collections.abc import Callable, Sequence
from typing import Any

from distlab.checks.kit.ranks import on_ranks

__all__ = ["call"]


def call(
    probe: Callable, function: Any, *args: Any, without: Sequence[str] = ()
) -> Any:
    """Return what `probe(function, *args)` returns in a process of its own.

    function: the learner's, or a value, or a tuple of several. What comes back is plain
    data: numbers, strings, lists, tuples, sets and dicts.
    without: modules that the exercise asks for, which the process does not have.

    Raises: Wrong with the failure if it raises, ends its process or takes too long.
    """
    report = on_ranks(_alone, function, [args], args=(probe,), without=without)
    return report.results[0]


def _alone(comm, function, probe, args):
    return probe(function, *args)
