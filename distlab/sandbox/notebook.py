"""A submission's process: it runs the cells, and forks the processes of each check.

outside ── a cell ──────────▶ run it ── outputs, as JSON ──▶ outside
        ── "check", socket ─▶ fork a check server: forks ranks, nodes, workers
"""

import contextlib
import json
import os
import select
import signal
import socket
import sys
from pathlib import Path

from distlab.processes import Child, on_its_own
from distlab.processes.child import die_with, keep_only
from distlab.processes.child_processes import children
from distlab.processes.server import Server, be_subreaper
from distlab.processes.server_handle import ServerHandle
from distlab.processes.wire import Disconnected, receive_request
from distlab.sandbox import undo_patches
from distlab.sandbox.fork_server import InOwnNamespaces
from distlab.sandbox.ipython_shell import Shell
from distlab.sandbox.limits import ResourceLimits
from distlab.sandbox.named_objects import notebook

__all__ = ["main"]

_servers, _ROUNDS = [], 100


def main(child: Child) -> None:
    """Run the cells that the owner sends, and open the checks that it requests."""
    on_its_own()
    ServerHandle.one_for_all()  # all that the cells start is forked from this state
    described = json.loads(child.receive())
    control = socket.socket(fileno=child.shared[0])
    os.makedirs(described["home"], exist_ok=True)
    os.chdir(described["home"])
    sys.path.insert(0, described["home"])
    for _ in range(described["files"]):
        _write(child.receive(), child.receive())
    shell = Shell(described["most_bytes"])
    notebook.space = shell.user_ns
    child.send(b"ready")
    place = InOwnNamespaces(
        ResourceLimits(*described["limits"]), isolated=described["isolated"]
    )
    while True:
        readable, _, _ = select.select([child, control], [], [])
        if child in readable:
            _run(shell, child, json.loads(child.receive()))
        if control in readable:
            _open_checks(control, place)


def _write(name, content):
    path = Path(os.fsdecode(bytes(name)))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _run(shell, child, cell):
    owner = os.getpid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        outputs = shell.run(cell["source"], cell["number"])
    except KeyboardInterrupt:  # it came after the cell's end
        outputs = []
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if os.getpid() != owner:  # a cell has forked, and this is not the notebook
            os._exit(0)
    notebook.broken = cell["lost"] | shell.broken
    child.send(json.dumps(outputs).encode())


def _open_checks(control, place):
    """Fork a server for one check's processes."""
    try:
        modules, (descriptor,) = receive_request(control)
    except Disconnected:
        os._exit(0)
    _stop_what_cells_left()
    owner, pid = os.getpid(), os.fork()
    if pid:
        os.close(descriptor)
        _servers.append(pid)
        for each in list(_servers):  # those of earlier checks
            with contextlib.suppress(ChildProcessError):
                if os.waitpid(each, os.WNOHANG)[0]:
                    _servers.remove(each)
        return
    try:
        be_subreaper()
        die_with(owner)
        keep_only([descriptor])
        undo_patches.restore()
        if "torch" in sys.modules:  # else a fork after torch's threads have run hangs
            sys.modules["torch"].set_num_threads(1)
        _OneCheck(descriptor, owner, place, json.loads(modules)).run()
    finally:
        os._exit(1)


def _stop_what_cells_left():
    """Stop the processes that cells have started, except those of `run` and checks."""
    known = {*_servers, *ServerHandle.pids()}
    for _ in range(_ROUNDS):  # children of one that ends become this process's
        left = [pid for pid in children(os.getpid()) if pid not in known]
        if not left:
            return
        for pid in left:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


class _OneCheck(Server):
    """A server with one session, which exits when the session closes."""

    def __init__(self, descriptor, owner, place, modules):
        master, self._unused = socket.socketpair()
        super().__init__(master, None, owner, place)
        self.adopt(socket.socket(fileno=descriptor), modules)

    def _close(self, session):
        super()._close(session)
        if not self.sessions:
            os._exit(0)
