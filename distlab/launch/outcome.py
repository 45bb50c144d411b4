"""The outcome of one call in a rank: its work run, and its result serialized."""

import json
import sys
import time
from collections.abc import Callable

from distlab.calls.failure_location import described
from distlab.calls.serialize import pack
from distlab.recorder import Recorder

__all__ = ["outcome_of"]


def outcome_of(
    work: Callable[[], object],
    recorder: Recorder,
    *,
    facts: Callable[[], dict] = dict,
    describe: Callable[[BaseException], dict] = described,
    leave: Callable[[bool], None] = lambda returned: None,
) -> bytes:
    """Do one call's work; return its outcome: a line of JSON, then the pickled value.

    facts: returns further facts to report once it has returned.
    describe: returns the facts to report of an exception.
    leave: called with whether it has returned, to complete this rank's notes.
    """
    recorder.begin()
    try:
        value = work()
        leave(True)
        payload = pack(value)
        report = {"outcome": "returned", **facts()}
        recorder.now("done")
    except BaseException as error:
        report = {"outcome": "raised", "time": time.monotonic(), **describe(error)}
        payload = _pack_error(error)
        leave(False)
        recorder.now("raised")
    sys.stdout.flush()
    sys.stderr.flush()
    return json.dumps(report).encode() + b"\n" + payload


def _pack_error(error):
    try:
        return pack(error.with_traceback(None))
    except Exception:
        return pack(RuntimeError(f"{type(error).__name__}: {error}"))
