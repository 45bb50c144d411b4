"""nbgrader's side of a marker: what it is asked, and what came of it."""

import json
import time
from typing import NamedTuple

from distlab.preloads import CHECKING
from distlab.processes import Ended, Frame, Processes

__all__ = ["Marks", "mark"]


class Marks(NamedTuple):
    """What a grade cell earned. error: what the instructor should know, or "".

    busy_s: the processor time of its checks.
    """

    outputs: list
    earned: float
    isolation: str
    error: str
    busy_s: float = 0.0


class _Gone(Exception):
    """The marker did not answer."""


def mark(task: dict, room: dict, seconds: float) -> Marks:
    """Have a new marker mark one grade cell; it is gone afterwards.

    room: what its jail is like: isolation and files.
    """
    deadline = time.monotonic() + seconds
    marker = Processes(1, "distlab.grading.marking.marker:main", preload=CHECKING)
    isolation, said = "", []
    try:
        marker.send(0, json.dumps(room).encode())
        isolation = _answer(marker, deadline, said)["isolation"]
        marker.send(0, json.dumps(task).encode())
        told = _answer(marker, deadline, said)
        earned, busy_s = told["earned"], told["busy_s"]
        return Marks(told["outputs"], earned, isolation, told["error"], busy_s)
    except _Gone as gone:
        why = f"the marker {gone}\n{''.join(said)[-2000:]}"
        return Marks([], 0.0, isolation, why)
    finally:
        marker.stop()


def _answer(marker, deadline, said):
    """Return the marker's next frame; what it prints is added to `said`."""
    while (left := deadline - time.monotonic()) > 0:
        for event in marker.poll(left):
            if isinstance(event, Frame):
                return json.loads(event.payload)
            if isinstance(event, Ended):
                raise _Gone(f"ended with status {event.status}")
            said.append(event.text)
    raise _Gone("was still at work when its time was over")
