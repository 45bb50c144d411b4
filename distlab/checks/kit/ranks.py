"""`on_ranks`: runs of a learner's function on ranks whose messages pass a relay.

    check ── probe, function, a rank's own input ──▶ ranks: processes
      ▲                                                │ every message
      ├── results: plain data ─────────────────────────┤
      └── trace: messages sent and received ── relay ◀─┘

No rank knows the input of another, or the expected result. A probe is a function of the
check that runs in each rank: it makes the input, calls the learner's function, and
returns the result.
"""

import inspect
import math
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

import cloudpickle
import numpy as np

from distlab.checks.kit.grading import Inconclusive, Wrong, is_drawn
from distlab.checks.kit.verdict_player import Played, one_message_a_second
from distlab.errors import NotSerializable, SandboxExceeded, WorldFailed, WorldTimeout
from distlab.launch import Relaying, Report, follow, kept_ranks, run
from distlab.patience import patience
from distlab.processes.server_handle import ServerHandle
from distlab.sandbox.withheld import files_of
from distlab.simulated import Fabric
from distlab.trace import BASE

__all__ = [
    "called",
    "contributions",
    "draws",
    "followed",
    "on_ranks",
    "seconds",
    "until",
]

MOST_IN_REAL_TIME = 8
_ADVICE = "trace up to here", "give it longer"
_BUSY = 4  # times the limit, which does not count the time that others take
_DRAWN_S = 5  # a run that took longer is not repeated for its picture


_deadline = ContextVar("deadline", default=math.inf)


def seconds() -> float:
    """Return the time limit of one run in seconds, at most the rest of the step's time.

    Else 30 s, or DISTLAB_CHECK_SECONDS, times DISTLAB_PATIENCE.

    Raises: Inconclusive if nothing is left, see `until`.
    """
    left = _deadline.get() - time.monotonic()
    if left <= 0:
        raise Inconclusive("The time for this step was over before this case began.")
    return min(left, patience(float(os.environ.get("DISTLAB_CHECK_SECONDS", 30))))


@contextmanager
def until(more_s: float) -> Iterator[None]:
    """Limit the runs of the body to this many seconds in total."""
    token = _deadline.set(time.monotonic() + more_s)
    try:
        yield
    finally:
        _deadline.reset(token)


def draws(ranks: int, length: int, low: int = -9999, high: int = 9999) -> list[list]:
    """Draw whole numbers for each rank that cannot be known in advance.

    They are ints; those of a float tensor come back as floats, equal to them.
    """
    words = np.frombuffer(os.urandom(4 * ranks * length), np.uint32)
    numbers = low + (words % (high - low + 1)).astype(np.int64)
    return numbers.reshape(ranks, length).tolist()


def contributions(ranks: int, length: int) -> list[list[int]]:
    """Return inputs that identify their rank: a sum's octal digit r counts rank r's."""
    return [[BASE**rank] * length for rank in range(ranks)]


def called(function: Callable, *args: Any) -> Any:
    """Call a learner's function in a rank; return its result.

    Raises: TypeError if it does not take these arguments, or made a generator.
    """
    name = getattr(function, "__name__", "your function")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        signature = None  # some that are compiled have none
    if signature is not None:
        try:
            signature.bind(*args)
        except TypeError as error:
            raise TypeError(
                f"{f'{name}{signature}'[:200]} is called with {len(args)} arguments, "
                f"and does not take that: {error}"
            ) from None
    returned = function(*args)
    if inspect.isgenerator(returned):
        raise TypeError(
            f"{name} made a generator, since there is a yield in it, and none of its "
            "lines has run. Where it says yield, write return"
        )
    return returned


def on_ranks(
    probe: Callable,
    function: Any,
    inputs: Sequence,
    *,
    args: Sequence = (),
    fabric: Fabric | None = None,
    answers: Callable | None = None,
    without: Sequence[str] = (),
    own: Callable | None = None,
) -> Report:
    """Run `probe(comm, function, *args, inputs[rank])` on ranks; return their report.

    Up to 8 ranks run in real time. More share this machine's cores, so their clock is
    virtual: a message takes one second, or its time on `fabric`; then
    `report.elapsed_s` is the number of messages in sequence, or seconds on `fabric`.
    answers: (rank, question, step) -> the result of `comm.ask(question)` in a rank.
    without: modules that contain the solution, which the ranks do not have.
    own: returns another picture of the failed run, as `followed` does.

    Raises: Wrong with the failure if the run fails, with `ready_made` if a collective
    was called; Inconclusive if the machine was too busy to start the ranks.
    """
    if fabric is None and len(inputs) > MOST_IN_REAL_TIME:
        fabric = one_message_a_second
    files_of(without)  # a name that is misspelt is the check's mistake
    limit_s, began_s = seconds(), time.monotonic()
    most_s = min(_BUSY * limit_s, _deadline.get() - began_s)
    how = {"modules": (probe.__module__,), "without": tuple(without), "kept": True}
    relaying = Relaying(answers, fabric, most_s=most_s, **how)
    try:
        each = [(own_input,) for own_input in inputs]
        how = {"args": (function, *args), "own_args": each, "relayed": relaying}
        how["timeout_s"] = limit_s / patience(1)  # since `run` is patient, too
        with _by_value():
            report = run(probe, len(inputs), quiet=True, **how)
    except NotSerializable as error:
        raise Wrong(str(error), unsent=True) from None
    except SandboxExceeded as error:
        raise _too_much(error.why) from None
    except WorldFailed as failure:
        if why := ServerHandle.limit_exceeded():
            raise _too_much(why) from None
        _blame_the_machine(failure, time.monotonic() - began_s >= most_s)
        raise _failed(failure, own) from None
    if collectives := report.trace.collectives():
        found = f"There was a call of {' and '.join(collectives)}."
        picture = Played(report.trace, "Your run")
        raise Wrong(found, picture=picture, ready_made=collectives)
    return report


@contextmanager
def _by_value():
    """Send checks' functions by value, with their constants, during the body.

    A submission's process has these modules, too; its cells may have changed them.
    """
    checks = sys.modules["distlab.checks"]
    cloudpickle.register_pickle_by_value(checks)
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(checks)


def _failed(failure, own):
    """Return `Wrong` with the report of a failed run, and its picture."""
    facts = {"failure": failure, "n": failure.trace.world_size}
    if collectives := failure.trace.collectives():
        facts["ready_made"] = collectives
    picture = None if isinstance(failure, WorldTimeout) or not own else own()
    picture = picture or Played(failure.trace, "The run that failed")
    return Wrong(_story(failure), picture=picture, **facts)


def followed(
    function: Callable,
    world_size: int,
    length: int,
    ideals: Sequence = (),
    holds: Callable | None = None,
    without: Sequence[str] = (),
) -> Played | None:
    """Return a player of `function(comm, tensor)` that shows contributions.

    ideals: traces of the library's to compare it with. None if it cannot be drawn.
    """
    if world_size > MOST_IN_REAL_TIME or not length or not is_drawn():
        return None
    modules = "distlab.launch.follow", __name__
    relaying = Relaying(modules=modules, without=tuple(without), kept=True)
    how = {"holds": holds, "timeout_s": _DRAWN_S, "quiet": True, "relayed": relaying}
    try:
        with kept_ranks():
            fn = partial(_unreturned, function)
            trace = follow(fn, world_size, numbers=length, **how).trace
    except WorldFailed as failure:
        trace = failure.trace
    except (LookupError, ValueError):  # the resulting tensor fits no picture
        return None
    return Played(trace, f"Your run, {world_size} ranks", ideals)


def _unreturned(function, comm, tensor):
    """Call a function and drop its result, which need not pickle."""
    function(comm, tensor)


def _too_much(why):
    found = f"Your function was ended, with all that it started: {why}."
    return Wrong(found, exceeded=why)


def _story(failure):
    """Return the failure report without its advice to the caller of `run`."""
    lines = str(failure).splitlines()
    lines[0] = re.sub(r" \(timeout_s=.*?\)", "", lines[0])
    kept = [line for line in lines if not any(words in line for words in _ADVICE)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept).rstrip())


def _blame_the_machine(failure, starved):
    """Raise Inconclusive if time ran out outside the learner's function, or for others.

    starved: whether the run had all the time that a busy machine is given.
    """
    said = str(failure)
    between = "did not start" in said or "was starting or ending its call" in said
    if not isinstance(failure, WorldTimeout):
        return
    if starved:
        raise Inconclusive(
            "Your function had too little of the processors before time ran out: this "
            "says nothing about it. The machine is busy: run this cell again."
        )
    if between and " was running" not in said:
        raise Inconclusive(
            f"{_story(failure)}\nYour function had not begun, or was over: this says "
            "nothing about it. The machine may be busy: run this cell again."
        )
