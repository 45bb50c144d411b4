"""The owner's side: a group of processes that start, speak and end together."""

import atexit
import json
import os
import re
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import ClassVar, NamedTuple

from distlab.errors import ProcessServerFailed
from distlab.processes.child import STACKS_SIGNAL
from distlab.processes.output import LineReader
from distlab.processes.wire import (
    Disconnected,
    FrameReader,
    send_frame,
    send_request,
)

__all__ = ["Ended", "Frame", "Lines", "Processes", "anonymous_file", "warm_up"]


class Frame(NamedTuple):
    """A process has sent `payload`."""

    index: int
    payload: bytearray


class Lines(NamedTuple):
    """A process has printed `text`: whole lines, except at its end."""

    index: int
    text: str


class Ended(NamedTuple):
    """A process is gone: `status` is its exit status, or minus the signal's number."""

    index: int
    status: int


class _Server:
    """The process server of this process, started when first needed."""

    _running: ClassVar[dict] = {}
    _lock = threading.Lock()

    def __init__(self, preload, start_method):
        ours, theirs = socket.socketpair()
        self.owner_pid = os.getpid()
        self.master = ours
        self.errors = anonymous_file("server-errors")
        arguments = [
            _trusted_path(),
            theirs.fileno(),
            os.getpid(),
            start_method,
            list(preload),
        ]
        code = (
            "import json, sys; sys.path[:], *rest = json.loads(sys.argv[1]); "
            "from distlab.processes.server import serve; serve(*rest)"
        )
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, json.dumps(arguments)],
            stdin=subprocess.DEVNULL,
            stdout=self.errors,
            stderr=self.errors,
            pass_fds=[theirs.fileno()],
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        )
        theirs.close()

    @classmethod
    def get(cls, preload, start_method):
        """Return the running server, started now if there is none."""
        key = (tuple(preload), start_method)
        server = cls._running.get(key)
        if server is not None and not server.usable():
            server.close()
            server = None
        if server is None:
            server = cls._running[key] = cls(preload, start_method)
        return server

    @classmethod
    def open_session(cls, preload, start_method):
        """Return a new session with the server, and the server."""
        with cls._lock:
            server = cls.get(preload, start_method)
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
    def close_all(cls):
        """End every server of this process."""
        with cls._lock:
            for server in cls._running.values():
                if server.owner_pid == os.getpid():
                    server.close()
            cls._running.clear()

    def usable(self):
        return self.owner_pid == os.getpid() and self.process.poll() is None

    def failure(self):
        """Return the error that says why the server is gone."""
        os.lseek(self.errors, 0, os.SEEK_SET)
        said = os.read(self.errors, 100_000).decode(errors="replace").strip()
        last = said.splitlines()[-1] if said else "it left no message; was it killed?"
        return ProcessServerFailed(
            "the process server, which forks the ranks, is gone.\n"
            f"Its last words: {last}\n"
            "The next call starts a new one. If it happens again, run `distlab doctor`."
        )

    def close(self):
        self.master.close()
        if self.owner_pid == os.getpid():
            try:
                self.process.wait(timeout=2)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        os.close(self.errors)


atexit.register(_Server.close_all)


def warm_up(preload, start_method: str = "fork") -> None:
    """Start the process server, so that it has imported `preload` when it is needed."""
    with _Server._lock:
        _Server.get(preload, start_method)


def _trusted_path():
    """Return the import path with the interpreter's own folders before the user's.

    A file `random.py` beside a notebook must not be what torch imports.
    """
    installed = tuple({os.path.realpath(p) for p in (sys.prefix, sys.base_prefix)})
    folders = [folder for folder in sys.path if folder and os.path.isabs(folder)]
    library = os.path.dirname(
        os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    )
    folders.sort(key=lambda folder: not os.path.realpath(folder).startswith(installed))
    return [*folders, library]


def anonymous_file(name: str) -> int:
    """Return a descriptor of a file in memory that has no name in any folder."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create(name)
    import tempfile

    with tempfile.TemporaryFile(prefix=name) as file:
        return os.dup(file.fileno())


class Processes:
    """`count` processes that run one entry point, and end together.

    entry: "package.module:function", called with a `Child` in each process.
    preload: modules that the process server imports before it forks.
    shared: descriptors that every process gets a copy of.

    Raises: ProcessServerFailed if the server cannot start or fork.
    If a peer dies: `poll` reports `Ended`; the others go on.
    """

    def __init__(self, count, entry, *, preload=(), shared=(), start_method="fork"):
        self.pids = [None] * count
        self.alive = set()
        self._channels, self._readers, self._outputs, self._stacks = [], [], [], []
        self._selector = selectors.DefaultSelector()
        self._session, self._server = _Server.open_session(preload, start_method)
        self._news = FrameReader(self._session)
        self._selector.register(self._session, selectors.EVENT_READ, "session")
        self._closed = False
        try:
            surroundings = _surroundings(entry)
            for index in range(count):
                self._start(index, surroundings, shared)
        except OSError as error:
            self.stop()
            raise self._server.failure() from error
        except BaseException:
            self.stop()
            raise

    def _start(self, index, surroundings, shared):
        ours, theirs = socket.socketpair()
        pipe, write_end = os.pipe()
        stacks = anonymous_file("stacks")
        self._channels.append(ours)
        self._readers.append(FrameReader(ours))
        self._outputs.append(LineReader(pipe))
        self._stacks.append(stacks)
        request = json.dumps(surroundings | {"index": index}).encode()
        try:
            send_request(
                self._session, request, [theirs.fileno(), write_end, stacks, *shared]
            )
        finally:
            theirs.close()
            os.close(write_end)
        self._selector.register(ours, selectors.EVENT_READ, index)
        self._selector.register(pipe, selectors.EVENT_READ, index)
        self.alive.add(index)

    def send(self, index: int, payload) -> None:
        """Send one frame to a process; a dead one is reported by `poll`, not here."""
        try:
            send_frame(self._channels[index], payload)
        except Disconnected:
            pass

    def poll(self, timeout_s: float) -> list:
        """Return what happened, waiting at most `timeout_s` for the first of it.

        What a process printed comes before the frame it sent next, and both come before
        its end.

        Raises: ProcessServerFailed if the server is gone.
        """
        happened = []
        news = False
        for index in {key.data for key, _ in self._selector.select(timeout_s)}:
            if index == "session":
                news = True
            else:
                happened += self._drain(index)
        if news:
            happened += self._read_news()
        return happened

    def _drain(self, index):
        """Return what a process has sent and printed by now."""
        frames = []
        try:
            frames = self._readers[index].read()
        except Disconnected:
            self._forget(self._channels[index])
        text, open_still = self._outputs[index].read(to_the_end=bool(frames))
        if not open_still:
            self._forget(self._outputs[index].descriptor)
        printed = [Lines(index, text)] if text else []
        return printed + [Frame(index, frame) for frame in frames]

    def _forget(self, source):
        try:
            self._selector.unregister(source)
        except KeyError:
            pass  # read once more after its end

    def _read_news(self):
        happened = []
        try:
            frames = self._news.read()
        except Disconnected:
            raise self._server.failure() from None
        for news in map(json.loads, frames):
            if "started" in news:
                self.pids[news["started"]] = news["pid"]
            elif "failed" in news:
                raise ProcessServerFailed(
                    f"process {news['failed']} could not be started: {news['why']}"
                )
            else:
                index = news["ended"]
                self.alive.discard(index)
                happened += self._drain(index)
                text = self._outputs[index].finish()
                happened += [Lines(index, text)] if text else []
                happened.append(Ended(index, news["status"]))
        return happened

    def signal(self, index: int, number: int) -> None:
        """Send a signal to a process that has not been reported as ended."""
        if index in self.alive and self.pids[index] is not None:
            try:
                os.kill(self.pids[index], number)
            except ProcessLookupError:
                pass  # its end is on its way

    def flush(self, index: int) -> str:
        """Return what a process printed without ending the line."""
        return self._outputs[index].finish()

    def stacks(self, indices, wait_s: float = 0.2) -> dict[int, list[tuple]]:
        """Return the main thread's stack of each process, innermost frame first.

        A frame is (file name, line number, function name). A process that does not
        answer in time has an empty stack.
        """
        indices = [i for i in indices if i in self.alive]
        for index in indices:
            os.ftruncate(self._stacks[index], 0)
            os.lseek(self._stacks[index], 0, os.SEEK_SET)
            self.signal(index, STACKS_SIGNAL)
        deadline = time.monotonic() + wait_s
        texts = dict.fromkeys(indices, "")
        while time.monotonic() < deadline:
            before = dict(texts)
            time.sleep(0.01)
            for index in indices:
                size = os.fstat(self._stacks[index]).st_size
                texts[index] = os.pread(self._stacks[index], size, 0).decode(
                    errors="replace"
                )
            if all(texts.values()) and texts == before:
                break
        return {index: _main_thread_frames(text) for index, text in texts.items()}

    def wait_ended(self, timeout_s: float) -> bool:
        """Wait for every process to end by itself; return whether all have."""
        deadline = time.monotonic() + timeout_s
        while self.alive and time.monotonic() < deadline:
            try:
                self.poll(max(0.0, deadline - time.monotonic()))
            except ProcessServerFailed:
                self.alive.clear()
        return not self.alive

    def stop(self) -> None:
        """Kill what is left, wait until it is gone, give back every descriptor."""
        if self._closed:
            return
        self._closed = True
        self._selector.close()
        try:
            self._session.shutdown(socket.SHUT_WR)
            self._session.settimeout(2.0)
            while self._session.recv(65536):
                pass
        except OSError:
            for index in list(
                self.alive
            ):  # the server does not answer: it may be starting
                self.signal(index, signal.SIGKILL)
        self._session.close()
        for channel in self._channels:
            channel.close()
        for output in self._outputs:
            output.close()
        for stacks in self._stacks:
            os.close(stacks)
        self.alive.clear()


def _surroundings(entry):
    try:
        directory = os.getcwd()
    except FileNotFoundError:
        directory = None
    return {
        "entry": entry,
        "environment": dict(os.environ),
        "path": sys.path,
        "directory": directory,
    }


def _main_thread_frames(text):
    """Parse faulthandler's dump; the main thread is its last block."""
    block = re.split(r"^(?:Current thread|Thread) .*$", text, flags=re.MULTILINE)[-1]
    found = re.findall(
        r'^  File "(.*)", line (\d+) in (.*)$', block, flags=re.MULTILINE
    )
    return [(name, int(line), function) for name, line, function in found]
