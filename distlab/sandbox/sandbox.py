"""`Sandbox` and `SandboxedNotebook`: the owner's side, outside."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from distlab.errors import ProcessServerFailed, SandboxExceeded, SandboxFailed
from distlab.patience import patience
from distlab.processes import Ended, FrameReceived, Processes, anonymous_file
from distlab.processes.server_handle import ServerHandle, trusted_path
from distlab.processes.time_limit import TimeLimit
from distlab.processes.wire import send_request
from distlab.sandbox.bwrap import command, users, why_no_sandbox
from distlab.sandbox.limits import ResourceLimits
from distlab.sandbox.withheld import STUB, files_of

__all__ = ["NotebookLost", "Sandbox", "SandboxedNotebook"]

PRELOAD = (
    "torch",
    "torch.distributed",
    "numpy.random",
    "cloudpickle",
    "IPython",
    "matplotlib.figure",
    "matplotlib_inline.backend_inline",
    "distlab.launch.rank",
    "distlab.dataflow.worker",
    "distlab.dataflow.rdd.executor",
    "distlab.sandbox.notebook",
    "distlab.checks",
)
_HOME = "/tmp/home"
_OPENS_S, _STARTS_S, _INTERRUPT_S = 120.0, 20.0, 3.0
_MOST_FRAME_BYTES, _MOST_PRINTED = 2**26, 10**6
_ENVIRONMENT = {
    "PATH": f"{os.path.dirname(sys.executable)}:/usr/local/bin:/usr/bin:/bin",
    "HOME": _HOME,
    "LANG": "C.UTF-8",
    "USER": "learner",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MPLCONFIGDIR": "/tmp/matplotlib",
    "DISTLAB_PROGRESS": "off",
}


def _environment():
    """Return the environment of processes in a sandbox."""
    ours = {k: v for k, v in os.environ.items() if k == "DISTLAB_PATIENCE"}
    return _ENVIRONMENT | ours  # processes there have time limits, too


class NotebookLost(Exception):
    """The notebook's process is gone; the message gives the reason."""


class Sandbox:
    """A bubblewrap in which notebooks run, for as long as it is open.

    withheld: modules of distlab that the exercise asks for, see `withheld`. preload:
    modules to import in addition to the usual ones. isolated: False for processes
    without isolation, requested on a system that offers none.

    Raises: SandboxFailed if none can start here.
    """

    def __init__(
        self,
        *,
        withheld: Iterable[str] = (),
        preload: Iterable[str] = (),
        isolated: bool = True,
    ):
        if isolated and (why := why_no_sandbox()):
            raise SandboxFailed(f"there can be no sandbox here: {why}")
        self.limits, self.isolated = ResourceLimits(), isolated
        self._folder = tempfile.TemporaryDirectory(prefix="distlab-sandbox-")
        stub = Path(self._folder.name, "withheld.py")
        stub.write_text(STUB)
        ours, theirs = socket.socketpair()
        described = [theirs.fileno(), [*PRELOAD, *preload], self.limits, isolated]
        code = (
            "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
            "from distlab.sandbox.fork_server import main; main(sys.argv[2])"
        )
        paths, described = json.dumps(trusted_path()), json.dumps(described)
        program = [sys.executable, "-P", "-s", "-c", code, paths, described]
        with users() as (whose, kept):
            if isolated:
                stubs = [(path, str(stub)) for path in files_of(withheld)]
                program = command(program, whose, stubs)
            errors = anonymous_file("sandbox-errors")
            process = subprocess.Popen(
                program,
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                pass_fds=[theirs.fileno(), *kept],
                env=_environment(),
                start_new_session=True,
            )
        theirs.close()
        self.handle = _Inside(ours, errors, process)

    def submission(
        self, files: Mapping[str, bytes] | None = None
    ) -> "SandboxedNotebook":
        """Return a new notebook's process; files: its folder's contents, by name."""
        return SandboxedNotebook(self, files or {})

    def close(self) -> None:
        """End every process in it; return when all are gone."""
        self.handle.close()
        self._folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class SandboxedNotebook:
    """One notebook's process in a sandbox, and the processes of its checks.

    Raises: SandboxFailed if it does not start.
    """

    def __init__(self, sandbox: Sandbox, files: Mapping[str, bytes]):
        ours, theirs = socket.socketpair()
        self._control = _Inside(ours, sandbox.handle.errors, None, self)
        try:
            with ServerHandle.all_from(sandbox.handle):
                self._process = Processes(
                    1,
                    "distlab.sandbox.notebook:main",
                    shared=[theirs.fileno()],
                    most_bytes=_MOST_FRAME_BYTES,
                )
        finally:
            theirs.close()
        described = {"home": _HOME, "files": len(files), "most_bytes": _MOST_PRINTED}
        if not sandbox.isolated:
            described["home"] = tempfile.mkdtemp(dir=sandbox._folder.name)
        described |= {"limits": sandbox.limits, "isolated": sandbox.isolated}
        self._process.send(0, json.dumps(described).encode())
        for name, content in files.items():
            self._process.send(0, name.encode("utf-8", "surrogateescape"))
            self._process.send(0, content)
        try:
            self._answer(patience(_STARTS_S if sandbox.handle.answered else _OPENS_S))
        except (NotebookLost, TimeoutError, ProcessServerFailed) as error:
            said = sandbox.handle.said()[-1000:]
            self.close()
            raise SandboxFailed(f"the sandbox did not start: {error}\n{said}") from None
        sandbox.handle.answered = True

    def run(
        self,
        source: str,
        number: int,
        timeout_s: float,
        lost: Mapping[str, str] | None = None,
        most_s: float = 0.0,
    ) -> list:
        """Run a cell; return its outputs as parsed JSON, which is not to be trusted.

        lost: names that earlier cells should have defined -> the reason they did not.
        most_s: seconds that it may take while others have the processors.

        Raises: TimeoutError if it was interrupted after `timeout_s`; its outputs are
        the error's second argument. NotebookLost if the process is gone or hung.
        """
        cell = {"source": source, "number": number, "lost": dict(lost or {})}
        self._process.send(0, json.dumps(cell).encode())
        try:
            return json.loads(self._answer(timeout_s, most_s))
        except TimeoutError:
            pass
        except ValueError:
            raise NotebookLost("its outputs made no sense") from None
        self._process.signal(0, 2)
        said = f"it did not end within {timeout_s:g} s"
        try:
            outputs = json.loads(self._answer(patience(_INTERRUPT_S)))
        except (TimeoutError, ValueError):
            raise NotebookLost(f"{said}, nor when it was interrupted") from None
        raise TimeoutError(said, outputs)

    def _answer(self, timeout_s, most_s=0.0):
        """Return the notebook's next frame."""
        limit = TimeLimit(self._process, timeout_s, most_s)
        while (left_s := limit.left_s()) > 0:
            happened = self._process.poll(min(left_s, 1.0))
            if self._process.exceeded:  # its end can take seconds
                raise NotebookLost(self._process.exceeded)
            for event in happened:
                if isinstance(event, FrameReceived):
                    return bytes(event.payload)
                if isinstance(event, Ended):
                    raise NotebookLost(self.why_ended() or "it ended its own process")
        raise TimeoutError

    @contextlib.contextmanager
    def checks(self) -> Iterator[None]:
        """Start every process of the body as a fork of the notebook."""
        with ServerHandle.all_from(self._control):
            yield

    def why_ended(self, wait_s: float = 0.2) -> str:
        """Return the limit that it has exceeded, in half a sentence; "" if none.

        wait_s: for the news, which comes a moment after a process was ended.
        """
        with contextlib.suppress(ProcessServerFailed):
            self._process.poll(wait_s)
        return self._process.exceeded

    def close(self) -> None:
        """End the process, and all that it has started."""
        self._process.stop()
        self._control.master.close()


class _Inside(ServerHandle):
    """A handle to a process server in a sandbox, for use by `Processes`."""

    most_bytes = _MOST_FRAME_BYTES

    def __init__(self, master, errors, process, submission=None):
        self.master, self.errors, self.process = master, errors, process
        self.owner_pid, self._submission = os.getpid(), submission
        self.answered = submission is not None

    def surroundings(self):
        """Return the settings of processes in the sandbox, none of them this one's."""
        return {
            "group": None,
            "environment": _environment(),
            "path": trusted_path(),
            "directory": "/",
        }

    def signal(self, session, index, pid, number):
        """Send a signal by way of the server, since its pids mean nothing here."""
        request = json.dumps({"signal": index, "number": int(number)}).encode()
        with contextlib.suppress(OSError):  # it is gone
            send_request(session, request, [])

    def exceeded(self):
        """Return the limit that the submission exceeded, in half a sentence, or ""."""
        return self._submission.why_ended() if self._submission is not None else ""

    def failure(self):
        """Return the error for a server that is gone, with the limit it exceeded."""
        if why := self.exceeded():
            return SandboxExceeded(why)
        return super().failure()
