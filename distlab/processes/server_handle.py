"""The kernel's side of the process server: start, sessions, signals, end."""

import atexit
import json
import math
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar

from distlab.errors import ProcessServerFailed
from distlab.processes.child import keep_only
from distlab.processes.folders import new_folder, remove_orphaned
from distlab.processes.memory import anonymous_file
from distlab.processes.server import serve
from distlab.processes.wire import send_request

__all__ = ["ServerHandle", "trusted_path", "warm_up"]


# One hash seed for all processes, always the same: every process puts a string into the
# same partition, also after the server was started anew. The environment variable
# overrides it.
_SEED = {"PYTHONHASHSEED": "0"}
_ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1"}


class ServerHandle:
    """A running process server of this process, started when first needed.

    There is one for each set of preloaded modules and start method. A fork of this
    process inherits the handle, but never uses or ends the server: it compares
    `owner_pid`.
    answered: True once it serves; before, it imports, and has no processes.
    """

    most_bytes = 2**40  # of a frame from one of its processes
    _running: ClassVar[dict] = {}
    _others: ClassVar[list] = []
    _elsewhere: ClassVar["ServerHandle | None"] = None
    _lock = threading.RLock()

    def __init__(
        self, preload: Sequence[str], start_method: str, *, by_fork: bool = False
    ):
        """Start a server; by_fork: as a fork of this process, with its imports."""
        remove_orphaned()
        ours, theirs = socket.socketpair()
        self.owner_pid = os.getpid()
        self.answered = by_fork
        self.master = ours
        self.errors = anonymous_file("server-errors")
        modules = _imported(preload, start_method)
        arguments = [trusted_path(), theirs.fileno(), os.getpid(), modules]
        start = self._forked if by_fork else self._started
        self.process = start(arguments, self.errors)
        theirs.close()

    def _started(self, arguments, errors):
        """Return a new interpreter that has become a server."""
        code = (
            "import json, sys; sys.path[:], *rest = json.loads(sys.argv[1]); "
            "from distlab.processes.server import serve; serve(*rest)"
        )
        # A notebook's interrupt reaches the whole process group, and the server only
        # ignores it once its interpreter is up: until then the signal is blocked.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return subprocess.Popen(
                [sys.executable, "-c", code, json.dumps(arguments)],
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                pass_fds=[arguments[1]],
                env=_SEED | os.environ | _ENVIRONMENT,
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _forked(self, arguments, errors):
        """Return a fork of this process that has become a server."""
        if pid := os.fork():
            return _ForkedProcess(pid)
        try:
            ServerHandle._lock = threading.RLock()  # it was held here, by the parent
            keep_only([arguments[1], errors])
            for descriptor in (1, 2):
                os.dup2(errors, descriptor)
            serve(*arguments[1:])
        finally:
            os._exit(1)

    @classmethod
    def start(cls, preload: Sequence[str], start_method: str) -> "ServerHandle":
        """Return the server for all, or that for `preload`, started if needed."""
        with cls._lock:
            if cls._elsewhere:
                return cls._elsewhere
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
            server = cls.start(preload, start_method)
            modules = json.dumps(_imported(preload, start_method)).encode()
            ours, theirs = socket.socketpair()
            try:
                send_request(server.master, modules, [theirs.fileno()])
            except OSError as error:
                ours.close()
                raise server.failure() from error
            finally:
                theirs.close()
            return ours, server

    @classmethod
    @contextmanager
    def all_from(cls, server: "ServerHandle") -> Iterator[None]:
        """Open every session at one server while the body runs."""
        before, cls._elsewhere = cls._elsewhere, server
        try:
            yield
        finally:
            cls._elsewhere = before

    @classmethod
    def limit_exceeded(cls) -> str:
        """Return the limit that `all_from`'s processes exceeded, in words, or ""."""
        return cls._elsewhere.exceeded() if cls._elsewhere is not None else ""

    def exceeded(self) -> str:
        """Return the limit that its processes exceeded: "", as here there is none."""
        return ""

    @classmethod
    def one_for_all(cls) -> None:
        """Open every later session at one server, which is a fork made now."""
        # Another process's handle must not be forgotten: it would close descriptors
        # that are this process's now.
        cls._others.append(cls._elsewhere)
        cls._elsewhere = cls((), "fork", by_fork=True)

    @classmethod
    def pids(cls) -> set[int]:
        """Return the pids of the servers that this process has started."""
        servers = [*filter(None, [cls._elsewhere]), *cls._running.values()]
        own = [each for each in servers if each.owner_pid == os.getpid()]
        return {each.process.pid for each in own}

    @classmethod
    def close_all(cls) -> None:
        """End every server of this process."""
        with cls._lock:
            for server in cls._running.values():
                if server.owner_pid == os.getpid():
                    server.close()
            cls._running.clear()

    def usable(self) -> bool:
        """Return True if the server runs, and is this process's own."""
        return self.owner_pid == os.getpid() and self.process.poll() is None

    def surroundings(self) -> dict:
        """Return the settings that its processes inherit from this one."""
        try:
            directory = os.getcwd()
        except FileNotFoundError:
            directory = None
        return {
            "group": os.getpgrp(),
            "environment": dict(os.environ),
            "path": sys.path,
            "directory": directory,
        }

    def new_folder(self) -> str:
        """Make a folder for its processes, in memory if possible; return its path."""
        return new_folder(in_memory=True)

    def signal(self, session: socket.socket, index: int, pid: int, number: int) -> None:
        """Send a signal to one of a session's processes.

        It is delivered when this returns; by way of the server it would be later.
        """
        with suppress(ProcessLookupError):  # its end is on its way
            os.kill(pid, number)

    def said(self) -> str:
        """Return the server's text on stdout and stderr; "" once it is closed."""
        if self.errors is None:
            return ""
        return os.pread(self.errors, 100_000, 0).decode(errors="replace").strip()

    def failure(self) -> ProcessServerFailed:
        """Return the error for a server that is gone, with its last line of output."""
        said = self.said()
        last = said.splitlines()[-1] if said else "it left no message; was it killed?"
        return ProcessServerFailed(
            "the process server, which forks the ranks, is gone.\n"
            f"Its last words: {last}\n"
            "The next call starts a new one. Does your function call os.kill or\n"
            "os.killpg? If not, and it happens again, run `distlab doctor`."
        )

    def close(self) -> None:
        """End the server, unless another process owns it; close the descriptors."""
        self.master.close()
        if self.owner_pid == os.getpid():
            if not self.answered:
                self.process.kill()
            try:
                self.process.wait(timeout=2)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if self.errors is not None:
            os.close(self.errors)
            self.errors = None


class _ForkedProcess:
    """A forked process with the methods of `subprocess.Popen` that are used here."""

    def __init__(self, pid: int):
        self.pid = pid
        self._ended = False

    def poll(self):
        """Return None as long as it runs."""
        self._ended = self._ended or os.waitpid(self.pid, os.WNOHANG)[0] != 0
        return 0 if self._ended else None

    def kill(self):
        """Kill it."""
        os.kill(self.pid, signal.SIGKILL)

    def wait(self, timeout: float | None = None):
        """Wait until it has ended."""
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("the server", timeout)
            time.sleep(0.001)


atexit.register(ServerHandle.close_all)


def warm_up(preload: Sequence[str], start_method: str = "fork") -> None:
    """Start the process server, so that it has imported `preload` when it is needed."""
    ServerHandle.start(preload, start_method)


def _imported(preload, start_method):
    """Return the modules that a server imports for processes that start in this way."""
    return list(preload) if start_method == "fork" else []


def trusted_path() -> list[str]:
    """Return the import path with the interpreter's own folders before the user's.

    torch must not import a file `random.py` beside a notebook.
    """
    installed = tuple({os.path.realpath(p) for p in (sys.prefix, sys.base_prefix)})
    folders = [folder for folder in sys.path if folder and os.path.isabs(folder)]
    library = str(Path(os.path.abspath(__file__)).parents[2])
    folders.sort(key=lambda folder: not os.path.realpath(folder).startswith(installed))
    return [*folders, library]
