"""A function's answers to many inputs, given in a Python of its own, under watch.

    check ── packed function, inputs ──▶ owner: a process ── fork ──▶ the function
          ◀── what each call gave ──────                  ◀── lines ──  in a guard

What is right is known to none of the two, so that nobody there can look it up. A call
that never ends, or that ends its process, ends the fork; the owner tells it all.
"""

import contextlib
import json
import os
import pickle
import reprlib
import resource
import select
import signal
import time
import traceback
from types import CodeType, FunctionType
from typing import NamedTuple

from distlab.processes.apart import ask
from distlab.processes.child import die_with, keep_only
from distlab.processes.guard import guard_for_good
from distlab.processes.memory import limit_memory

__all__ = ["Answers", "Raised", "Returned", "answers_of", "main"]

_LOCKED = ("distlab.agree", "distlab.grading")
_OTHER_BOOLS = {("numpy", "bool"), ("numpy", "bool_")}  # what comparing numbers gives
_MEMORY_BYTES, _MOST_BYTES, _MOST_FRAMES = 2**31, 2**25, 20


class NotCallable(TypeError):
    """What was to be called is no function."""


class Returned(NamedTuple):
    """A call that returned. changed: whether it changed the list that it was given.

    value: if it is True or False; else None, and shown and kind say what it is.
    """

    value: bool | None
    changed: bool
    shown: str
    kind: str


class Raised(NamedTuple):
    """A call that raised. frames: (file, line, function), outermost first."""

    kind: str
    said: str
    frames: list


class Answers(NamedTuple):
    """What the calls gave, up to the first that did not return.

    end: "done"; "died", if the process ended; "slow", if its processor time was over;
        "waits", if the wall clock's was, and it had hardly used the processor.
    kept: whether the function came with containers in use that were not empty.
    """

    calls: list
    end: str
    cpu_s: float
    kept: bool = False


_SHAPES = set(Returned._fields), set(Raised._fields)


def answers_of(packed: bytes, inputs: list, *, cpu_s: int, wall_s: float) -> Answers:
    """Return what a packed function gives for each input, a list, one after another.

    cpu_s: processor time for all of them together.

    Raises: TrialTimeout or RuntimeError if the Python that watches fails.
    """
    task = {"packed": packed, "inputs": inputs, "cpu_s": cpu_s, "wall_s": wall_s}
    said = ask(__name__, task, timeout_s=wall_s + 30)
    calls = [_call(told) for told in said.pop("calls")]
    return Answers(calls, **said)


def _call(told):
    return Raised(**told) if "said" in told else Returned(**told)


def main(task: dict) -> dict:
    """Answer a task, from a fork that can be ended."""
    reader, writer = os.pipe()
    owner, pid = os.getpid(), os.fork()
    if pid == 0:
        try:
            os.setpgid(0, 0)
            keep_only([writer])
            die_with(owner)
            _call_all(task, writer)
        finally:
            os._exit(0)
    os.close(writer)
    said, waited = _read(reader, time.monotonic() + task["wall_s"])
    kept, calls = _calls(said)
    for kill, whom in ((os.kill, pid), (os.killpg, pid)):
        with contextlib.suppress(ProcessLookupError):
            kill(whom, signal.SIGKILL)  # it may have ended, and is a zombie then
    _, status, usage = os.wait4(pid, 0)
    cpu_s = usage.ru_utime + usage.ru_stime
    end = "waits" if waited else "died"
    if len(calls) == len(task["inputs"]) or (calls and "said" in calls[-1]):
        end = "done"
    elif status == signal.SIGXCPU or cpu_s > 0.7 * task["cpu_s"]:
        end = "slow"
    return {"calls": calls, "cpu_s": cpu_s, "end": end, "kept": kept}


def _call_all(task, writer):
    """Call the function with each input; write a line about each call."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (task["cpu_s"], task["cpu_s"] + 1))
    limit_memory(_MEMORY_BYTES)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    inputs, packed = task.pop("inputs"), task.pop("packed")
    guard_for_good(_LOCKED)
    function = None
    for given in inputs:
        told = {}
        try:
            if function is None:
                function = pickle.loads(packed)[0]
                _tell(writer, _keeps(function))
            told = _returned(function, given)
        except BaseException as error:
            told = _raised(error)
        _tell(writer, told)
        if "said" in told:
            return


def _tell(writer, told):
    os.write(writer, json.dumps(told).encode() + b"\n")


def _keeps(function):
    """Whether a function uses containers from outside of it that are not empty.

    Functions inside it are looked at, too.
    """
    if not callable(function):
        raise NotCallable(f"It is {function!r:.80}.")
    if type(function) is not FunctionType:
        return False
    values = [cell.cell_contents for cell in function.__closure__ or ()]
    values += function.__defaults__ or ()
    values += [function.__globals__.get(name) for name in _names(function.__code__)]
    return any(type(value) in (set, dict, list) and value for value in values)


def _names(code):
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)


def _returned(function, given):
    copy = list(given)
    value = function(copy)
    if (type(value).__module__, type(value).__name__) in _OTHER_BOOLS:
        value = bool(value)
    plain = type(value) is bool
    shown = "" if plain else " ".join(reprlib.repr(value).split())[:100]
    return {
        "value": value if plain else None,
        "changed": copy != given,
        "shown": shown,
        "kind": str(type(value).__name__),
    }


def _raised(error):
    frames = traceback.extract_tb(error.__traceback__)
    if len(frames) > _MOST_FRAMES:
        frames = frames[:5] + frames[-5:]
    return {
        "kind": type(error).__name__,
        "said": str(error)[:1000],
        "frames": [(f.filename, f.lineno, f.name) for f in frames],
    }


def _read(reader, deadline):
    """Return what comes through the pipe, and whether that was cut off."""
    parts, size = [], 0
    while size < _MOST_BYTES:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([reader], [], [], left)[0]:
            return b"".join(parts), True
        part = os.read(reader, 1 << 16)
        if not part:
            break
        parts.append(part)
        size += len(part)
    return b"".join(parts), False


def _calls(said):
    """Return what the first line tells, and the calls, up to one that is not ours."""
    kept, calls = False, []
    for number, line in enumerate(said.split(b"\n")[:-1]):
        try:
            told = json.loads(line)
        except (ValueError, RecursionError):
            break
        if number == 0 and type(told) is bool:
            kept = told
        elif _is_call(told):
            calls.append(told)
        else:
            break
    return kept, calls


def _is_call(told):
    """Whether this is what `_returned` or `_raised` gives, part by part."""
    if type(told) is not dict or set(told) not in _SHAPES:
        return False
    if "said" in told:
        frames = told["frames"]
        fits = type(frames) is list and all(map(_is_frame, frames))
        return fits and type(told["kind"]) is type(told["said"]) is str
    plain = told["value"] is None or type(told["value"]) is bool
    words = type(told["kind"]) is type(told["shown"]) is str
    return plain and words and type(told["changed"]) is bool


def _is_frame(frame):
    kinds = (str, int, str)
    return type(frame) is list and tuple(map(type, frame)) == kinds
