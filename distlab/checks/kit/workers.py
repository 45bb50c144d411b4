"""`on_workers`: runs of a program with workers, such as `MapReduce` or a `Context`.

    check ── program, functions, args ──▶ a process ── fork ──▶ its workers
          ◀── plain data: output, counters ──────────

The program is the check's, and runs the library's engine on the learner's functions.
Its processes have ended, and its folder is removed, when the result arrives.
"""

import os
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

from distlab.checks.kit.calls import call
from distlab.processes import on_its_own
from distlab.processes.server_handle import ServerHandle

__all__ = ["on_workers"]


def on_workers(
    program: Callable, functions: Any, *args: Any, without: Sequence[str] = ()
) -> Any:
    """Return the result of `program(functions, *args)` in a process that has workers.

    The working directory of the program is an empty folder. The result must be plain
    data: numbers, strings, lists, tuples, sets and dicts.

    Raises: Wrong with the failure, as `call` does.
    """
    return call(_with_workers, functions, program, args, without=without)


def _with_workers(functions, program, args):
    on_its_own()
    ServerHandle.one_for_all()  # workers are forks of this process: all is imported
    around = tempfile.gettempdir()
    with tempfile.TemporaryDirectory(prefix="distlab-check-") as folder:
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        os.chdir(folder)
        try:
            return program(functions, *args)
        finally:
            os.chdir("/")
            os.environ["TMPDIR"] = tempfile.tempdir = around
            ServerHandle.close_all()
