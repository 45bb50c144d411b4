"""The writer process: it has a snapshot of this process, and writes it in parallel.

The snapshot is a fork. The system copies no page of memory until one of the two writes
to it, so that this process continues after some milliseconds, and the writer sees the
memory at the fork, even if the optimizer steps meanwhile. Redis saves this way, too.
"""

import os
import signal
from collections.abc import Callable

from distlab.errors import CheckpointError
from distlab.processes.child import die_with

__all__ = ["Writer"]


class Writer:
    """A fork of this process that calls `fn(*args)`, and dies with this process."""

    def __init__(self, fn: Callable, *args: object):
        self._answer, answer = os.pipe()
        parent = os.getpid()
        self._pid = os.fork()
        if self._pid == 0:
            _be_writer(parent, answer, fn, args)
        os.close(answer)

    def wait(self) -> None:
        """Wait for the writer's end.

        Raises: CheckpointError if it could not write, or was killed.
        """
        said, status = self._end()
        if said:
            raise CheckpointError(said)
        if status:
            how = os.waitstatus_to_exitcode(status)
            raise CheckpointError(
                f"the writer process was killed ({signal.Signals(-how).name})."
                if how < 0
                else f"the writer process left with exit status {how}."
            )

    def kill(self) -> None:
        """Kill the writer, if it still runs."""
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            self._end()

    def _end(self):
        with os.fdopen(self._answer, "rb") as answer:
            said = answer.read().decode()
        pid, self._pid = self._pid, None
        return said, os.waitpid(pid, 0)[1]


def _be_writer(parent, answer, fn, args):
    """Call `fn`, and send an error to the parent; never returns."""
    status = 1
    try:
        for number in (signal.SIGTERM, signal.SIGINT):  # it dies with the rank, anyway
            signal.signal(number, signal.SIG_IGN)
        die_with(parent)
        fn(*args)
        status = 0
    except OSError as error:
        os.write(answer, str(error).encode()[:4000])
    except BaseException as error:
        os.write(answer, f"{type(error).__name__}: {error}".encode()[:4000])
    finally:
        os._exit(status)
