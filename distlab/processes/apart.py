"""Ask a process of its own: a task goes there, plain data comes back.

ask(module, task) ──▶ a fork of a server that has imported nothing of the asker's
                  ◀── main(task) of the module, as JSON, of which there is not too much

It may start processes itself, and has a folder for its temporary files. Whatever
becomes of it, all that is gone when the answer is there.
"""

import json
import os
import pickle
import sys
import tempfile
import time
from importlib import import_module

from distlab.cells import cells, learn
from distlab.processes.child import Child, on_its_own
from distlab.processes.group import Ended, Frame, Lines, Processes
from distlab.processes.server_handle import ServerHandle

__all__ = ["TRIALS", "TrialTimeout", "ask", "main"]

TRIALS = (__name__,)  # what the server of all trials has imported from the start
_ANSWER_BYTES, _WORDS, _KEY_BYTES = 2**25, 500, 16


class TrialTimeout(Exception):
    """A trial's time was over before it had ended."""


def ask(module: str, task: dict, *, timeout_s: float) -> dict:
    """Return what `main(task)` of a module returns.

    Raises: TrialTimeout; RuntimeError if the process fails.
    """
    processes = Processes(
        1,
        f"{__name__}:main",
        preload=TRIALS,
        also=(module,),
        private_folder=True,
        most_bytes=_ANSWER_BYTES,
    )
    try:
        key = os.urandom(_KEY_BYTES)
        here = {"cells": cells(), "path": sys.path, "folder": processes.folder}
        processes.send(0, pickle.dumps((key, module, here, task)))
        said = bytes(_answer(processes, time.monotonic() + timeout_s))
    finally:
        processes.stop()
    if not said.startswith(key):  # somebody else has written it
        raise RuntimeError("the answer is not that of the process that was asked")
    return json.loads(said[_KEY_BYTES:])


def _answer(processes, deadline):
    """Return the first frame that comes."""
    said = ""
    while (left_s := deadline - time.monotonic()) > 0:
        for what in processes.poll(left_s):
            if isinstance(what, Frame):
                return what.payload
            if isinstance(what, Lines):
                said = (said + what.text)[-_WORDS:]
            elif isinstance(what, Ended):
                raise RuntimeError(f"the process that was asked said: {said.strip()}")
    raise TrialTimeout


def main(child: Child) -> None:
    """Answer, in the process that has been asked."""
    key, module, here, task = pickle.loads(child.receive())
    sys.path[:] = here["path"]  # for what is imported later; ours is there by now
    learn(here["cells"])
    os.environ["TMPDIR"] = tempfile.tempdir = here["folder"]
    on_its_own()
    ServerHandle.by_fork = True
    said = json.dumps(import_module(module).main(task))
    child.send(key + said.encode())
