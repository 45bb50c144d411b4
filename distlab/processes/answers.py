"""A function's answers to many inputs, given in a Python of its own, under watch.

    check ── packed function, inputs ──▶ owner: a new Python ── fork ──▶ the function
          ◀── what each call gave ──────                   ◀── lines ──  in a guard

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
from typing import NamedTuple

from distlab.processes.apart import answer, ask, task_in
from distlab.processes.child import die_with
from distlab.processes.guard import Guard

__all__ = ["Answers", "Raised", "Returned", "answers_of", "main"]

_LOCKED = ("distlab.agree", "distlab.grading")
_MEMORY_BYTES, _MOST_BYTES, _MOST_FRAMES = 2**31, 2**25, 20


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
    """

    calls: list
    end: str
    cpu_s: float


_SHAPES = set(Returned._fields), set(Raised._fields)


def answers_of(packed: bytes, inputs: list, *, cpu_s: int, wall_s: float) -> Answers:
    """Return what a packed function gives for each input, a list, one after another.

    cpu_s: processor time for all of them together.

    Raises: TrialTimeout or RuntimeError if the Python that watches fails.
    """
    task = {"packed": packed, "inputs": inputs, "cpu_s": cpu_s, "wall_s": wall_s}
    said = ask(__name__, task, timeout_s=wall_s + 30)
    return Answers([_call(told) for told in said["calls"]], said["end"], said["cpu_s"])


def _call(told):
    return Raised(**told) if "said" in told else Returned(**told)


def main(folder: str) -> None:
    """Answer the task in a folder, from a fork that can be ended."""
    task = task_in(folder)
    reader, writer = os.pipe()
    owner, pid = os.getpid(), os.fork()
    if pid == 0:
        try:
            os.setpgid(0, 0)
            os.close(reader)
            die_with(owner)
            _call_all(task, writer)
        finally:
            os._exit(0)
    os.close(writer)
    said, waited = _read(reader, time.monotonic() + task["wall_s"])
    calls = _calls(said)
    for kill, whom in ((os.kill, pid), (os.killpg, pid)):
        with contextlib.suppress(ProcessLookupError):
            kill(whom, signal.SIGKILL)  # it may have ended, and is a zombie then
    _, _, usage = os.wait4(pid, 0)
    cpu_s = usage.ru_utime + usage.ru_stime
    end = "waits" if waited else "died"
    if len(calls) == len(task["inputs"]) or (calls and "said" in calls[-1]):
        end = "done"
    elif cpu_s > 0.7 * task["cpu_s"]:
        end = "slow"
    answer(folder, {"calls": calls, "cpu_s": cpu_s, "end": end})


def _call_all(task, writer):
    """Call the function with each input; write a line about each call."""
    resource.setrlimit(resource.RLIMIT_CPU, (task["cpu_s"], task["cpu_s"]))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    inputs, packed = task.pop("inputs"), task.pop("packed")
    with Guard(_LOCKED).around():
        function = None
        for given in inputs:
            told = {}
            try:
                function = function or pickle.loads(packed)[0]
                told = _returned(function, given)
            except BaseException as error:
                told = _raised(error)
            os.write(writer, json.dumps(told).encode() + b"\n")
            if "said" in told:
                return


def _returned(function, given):
    copy = list(given)
    value = function(copy)
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
    """Return the calls that the lines tell of, up to one that is not ours."""
    calls = []
    for line in said.split(b"\n")[:-1]:
        try:
            told = json.loads(line)
        except ValueError:
            break
        if not isinstance(told, dict) or set(told) not in _SHAPES:
            break
        calls.append(told)
    return calls
