"""The kernel's side of the process server: started once, asked for sessions, ended."""

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from distlab.errors import ProcessServerFailed
from distlab.processes.memory import anonymous_file
from distlab.processes.wire import send_request

__all__ = ["ServerHandle", "trusted_path", "warm_up"]


# One seed for the hashes of all processes, always the same: a string belongs to the
# same partition whoever asks, and also when a server had to be started anew. Who wants
# another one says so in the environment.
_SEED = {"PYTHONHASHSEED": "0"}
_ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1"}


class ServerHandle:
    """A running process server of this process, started when first needed.

    There is one for each set of preloaded modules and start method. A fork of this
    process inherits the handle, but never uses or ends the server: `owner_pid` tells.
    """

    _running: ClassVar[dict] = {}
    _lock = threading.Lock()

    def __init__(self, preload: Sequence[str], start_method: str):
        ours, theirs = socket.socketpair()
        self.owner_pid = os.getpid()
        self.master = ours
        self.errors = anonymous_file("server-errors")
        arguments = [
            trusted_path(),
            theirs.fileno(),
            os.getpid(),
            start_method,
            list(preload),
        ]
        code = (
            "import json, sys; sys.path[:], *rest = json.loads(sys.argv[1]); "
            "from distlab.processes.server import serve; serve(*rest)"
        )
        # A notebook's interrupt reaches the whole process group, and the server only
        # ignores it once its interpreter is up: until then the signal is blocked.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-c", code, json.dumps(arguments)],
                stdin=subprocess.DEVNULL,
                stdout=self.errors,
                stderr=self.errors,
                pass_fds=[theirs.fileno()],
                env=_SEED | os.environ | _ENVIRONMENT,
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()

    @classmethod
    def start(cls, preload: Sequence[str], start_method: str) -> None:
        """Start a server, unless one is running."""
        with cls._lock:
            cls._get(preload, start_method)

    @classmethod
    def _get(cls, preload, start_method):
        """Return the running server, started now if there is none; needs the lock."""
        key = (tuple(preload), start_method)
        server = cls._running.get(key)
        if server is not None and not server.usable():
            server.close()
            server = None
        if server is None:
            server = cls._running[key] = cls(preload, start_method)
        return server

    @classmethod
    def open_session(
        cls, preload: Sequence[str], start_method: str
    ) -> tuple[socket.socket, "ServerHandle"]:
        """Return a new session with the server, and the server.

        Raises: ProcessServerFailed if the server is gone.
        """
        with cls._lock:
            server = cls._get(preload, start_method)
            ours, theirs = socket.socketpair()
            try:
                send_request(server.master, b"session", [theirs.fileno()])
            except OSError as error:
                ours.close()
                raise server.failure() from error
            finally:
                theirs.close()
            return ours, server

    @classmethod
    def close_all(cls) -> None:
        """End every server of this process."""
        with cls._lock:
            for server in cls._running.values():
                if server.owner_pid == os.getpid():
                    server.close()
            cls._running.clear()

    def usable(self) -> bool:
        """Return whether the server runs, and is this process's own."""
        return self.owner_pid == os.getpid() and self.process.poll() is None

    def failure(self) -> ProcessServerFailed:
        """Return the error that says why the server is gone."""
        os.lseek(self.errors, 0, os.SEEK_SET)
        said = os.read(self.errors, 100_000).decode(errors="replace").strip()
        last = said.splitlines()[-1] if said else "it left no message; was it killed?"
        return ProcessServerFailed(
            "the process server, which forks the ranks, is gone.\n"
            f"Its last words: {last}\n"
            "The next call starts a new one. If it happens again, run `distlab doctor`."
        )

    def close(self) -> None:
        """End the server, unless another process owns it; close what this one holds."""
        self.master.close()
        if self.owner_pid == os.getpid():
            try:
                self.process.wait(timeout=2)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        os.close(self.errors)


atexit.register(ServerHandle.close_all)


def warm_up(preload: Sequence[str], start_method: str = "fork") -> None:
    """Start the process server, so that it has imported `preload` when it is needed."""
    ServerHandle.start(preload, start_method)


def trusted_path() -> list[str]:
    """Return the import path with the interpreter's own folders before the user's.

    A file `random.py` beside a notebook must not be what torch imports.
    """
    installed = tuple({os.path.realpath(p) for p in (sys.prefix, sys.base_prefix)})
    folders = [folder for folder in sys.path if folder and os.path.isabs(folder)]
    library = str(Path(os.path.abspath(__file__)).parents[2])
    folders.sort(key=lambda folder: not os.path.realpath(folder).startswith(installed))
    return [*folders, library]
