"""The loop inside a worker: receive a task, run it, send back its result.

    owner ── functions ──▶ worker
          ── task ───────▶        fn(functions, *args) ── result or exception ──▶ owner
          ── task ───────▶        ...

The owner's end of the connection is in `workers`.
"""

import os
import pickle
import signal
import sys

import cloudpickle

from distlab.calls.failure_location import described
from distlab.calls.serialize import unpack
from distlab.processes import Child

__all__ = ["AtRecord", "commit", "die_if_planned", "main"]

_doomed = False


class AtRecord(Exception):
    """Failure of a user's function; the cause is its exception.

    where: the record or key that it failed on, in words. place: the record's file and
    offset, where there is one.
    """

    def __init__(self, where: str, place: tuple | None = None):
        super().__init__(where)
        self.where = where
        self.place = place


def main(child: Child) -> None:
    """Receive the functions, then run tasks until the owner ends this process."""
    global _doomed
    functions = unpack(child.receive())
    while True:
        fn, args, _doomed = unpack(child.receive())
        try:
            answer = True, fn(functions, *args)
        except BaseException as error:
            answer = False, _failure(error)
        sys.stdout.flush()
        sys.stderr.flush()
        die_if_planned()
        child.send(cloudpickle.dumps(answer))


def commit(temporary: str, final: str) -> None:
    """Rename a complete file to its final name, atomically."""
    die_if_planned()
    os.replace(temporary, final)


def die_if_planned() -> None:
    """Kill this worker if its owner planned that for this task."""
    if _doomed:
        os.kill(os.getpid(), signal.SIGKILL)


def _failure(error):
    """Return the facts of an exception that the owner reports, as a dict."""
    at = error if isinstance(error, AtRecord) else None
    if at is not None:
        error = at.__cause__
    facts = described(error)
    facts["where"] = at.where if at else ""
    facts["place"] = at.place if at else None
    facts["disk"] = isinstance(error, OSError) and at is None
    try:
        facts["error"] = pickle.loads(cloudpickle.dumps(error.with_traceback(None)))
    except Exception:
        facts["error"] = RuntimeError(f"{facts['type']}: {facts['message']}")
    return facts
