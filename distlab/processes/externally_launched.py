"""Processes that another program launches, such as mpirun; they connect to a socket.

    owner                process server        host          launched processes
    ─────                ──────────────        ────          ──────────────────
    owner ── session ──▶ fork() ────────────▶  mpirun ────▶  join(listener)
      ▲ listener ◀───────────────────────────── "I am 2" ──────┤
      ├────── channel, output, stacks ───────────────────────▶ │
      └─────────────────────────────────────── "I ended" ◀──── │ entry(child)

`listener` is a Unix socket in a folder that only this user can open. A launched process
receives there the request and descriptors that the process server would have sent, so
from then on it is a process like any other. When the owner is gone, the server kills
the host; the death of the host kills its processes, and the server kills the rest.
"""

import json
import os
import select
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping

from distlab.errors import EngineFailed
from distlab.processes.group import Processes, close_theirs
from distlab.processes.server_handle import trusted_path
from distlab.processes.wire import Disconnected, FrameReader, send_request

__all__ = ["LaunchedProcesses"]

_HOST_ENDS_S = 1.0


class _Incoming:
    """A launched process's connection. `index` is known after its first frame."""

    def __init__(self, sock):
        self.sock = sock
        self.reader = FrameReader(sock)
        self.index = None


class LaunchedProcesses(Processes):
    """`count` processes that a host starts, instead of the process server.

    host: given the path of a private folder, returns the command of the host, to which
    the command of one launched process is added.
    number: the environment variable in which the host gives a process its index.
    environment: the host's, from which it makes that of its processes.

    Raises: as `Processes` does; EngineFailed from `poll` if the host ends before they
    do.
    """

    def __init__(
        self,
        count: int,
        entry: str,
        *,
        host: Callable[[str], list[str]],
        number: str,
        environment: Mapping[str, str],
        **how,
    ):
        self._host, self._number, self._environment = host, number, environment
        self._host_index = count
        self._host_said = ""
        self._listener = None
        self._incoming = []
        self._expected = {}  # index -> request, descriptors, shared; until it connects
        super().__init__(count, entry, private_folder=True, **how)

    def _start_all(self, surroundings, shared):
        listener = os.path.join(self.folder, "listener")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(listener)
        self._listener.listen(self._host_index)
        self._selector.register(self._listener, selectors.EVENT_READ, "listener")
        surroundings["group"] = 0  # their own: mpirun would act on Ctrl-C, too
        for index in range(self._host_index):
            request = json.dumps(surroundings | {"index": index}).encode()
            self._expected[index] = request, self._open_channels(index), shared
        self._command = [*self._host(self.folder), *_command(listener, self._number)]
        surroundings["entry"] = "distlab.processes.externally_launched_child:host"
        surroundings["environment"] = dict(self._environment)
        self.pids.append(None)
        self._start(self._host_index, surroundings, ())
        self.alive.discard(self._host_index)  # `wait_ended` does not wait for it
        self.send(self._host_index, json.dumps(self._command).encode())

    def _take(self, source):
        if source == "listener":
            self._accept_connection()
        elif isinstance(source, _Incoming):
            return self._read_connection(source)
        elif source == self._host_index:
            self._host_said += _text(self._drain(source))
        else:
            return self._drain(source)
        return []

    def _accept_connection(self):
        incoming = _Incoming(self._listener.accept()[0])
        self._incoming.append(incoming)
        self._selector.register(incoming.sock, selectors.EVENT_READ, incoming)

    def _read_connection(self, incoming):
        """Return the events that follow from a connection's new frames."""
        try:
            frames = incoming.reader.read()
        except Disconnected:
            self._forget(incoming.sock)
            return self._gone(incoming.index) if incoming.index in self.alive else []
        happened = []
        for event in map(json.loads, frames):
            if "index" in event:
                incoming.index = event["index"]
                self._send_request(incoming)
            elif "pid" in event:
                self.pids[incoming.index] = event["pid"]
            else:
                happened += self._end(incoming.index, event["ended"])
        return happened

    def _send_request(self, incoming):
        request, descriptors, shared = self._expected.pop(incoming.index)
        try:
            send_request(incoming.sock, request, [*descriptors, *shared])
        except OSError:
            pass  # it is gone again, which `_read_connection` notices next
        finally:
            close_theirs(descriptors)

    def _gone(self, index):
        """Return the end of a launched process whose first process was killed.

        Raises: EngineFailed if the server reports that the host ended, too.
        """
        polled = select.poll()
        polled.register(self._session, select.POLLIN)
        deadline = time.monotonic() + _HOST_ENDS_S
        while polled.poll(max(0, deadline - time.monotonic()) * 1000):
            self._read_process_events()
        return self._end(index, -signal.SIGKILL)

    def _end(self, index, status):
        happened = super()._end(index, status)
        if index != self._host_index:
            return happened
        self._host_said += _text(happened)
        if self.alive:
            raise self._failure(status)
        return []

    def _failure(self, status):
        """Return the error with the host's exit status and its last lines of output."""
        name = os.path.basename(self._command[0])
        how = f"it left with exit status {status}"
        if status < 0:
            how = f"it was killed by {signal.Signals(-status).name}"
        said = [line for line in self._host_said.splitlines() if line.strip(" -")]
        lines = [f"{name} ended before the processes that it started: {how}.", ""]
        lines += [f"    It said: {line}" for line in said[-12:]]
        lines.append("    The next call starts it again. If it ends as early, see in a")
        lines.append(f"    terminal what {name} does there.")
        return EngineFailed("\n".join(lines))

    def stop(self) -> None:
        """Kill the remaining processes, the host first; close every descriptor."""
        super().stop()
        if self._listener is not None:
            self._listener.close()
        for incoming in self._incoming:
            incoming.sock.close()
        for _, descriptors, _ in self._expected.values():
            close_theirs(descriptors)
        self._expected.clear()


def _command(listener, number):
    """Return the command that starts one launched process."""
    code = (
        "import json, sys; sys.path[:], *rest = json.loads(sys.argv[1]); "
        "from distlab.processes.externally_launched_child import join; join(*rest)"
    )
    argument = json.dumps([trusted_path(), listener, number])
    return [sys.executable, "-c", code, argument]


def _text(happened):
    return "".join(what.text for what in happened if hasattr(what, "text"))
