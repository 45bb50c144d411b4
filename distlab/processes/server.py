"""The process server: imports what every process needs, then forks on request.

It runs nothing of the user's. Requests come over sessions, socket pairs handed to it
by the kernel; each session's processes are killed when the session closes, and
everything closes when the kernel is gone. As a child subreaper the server inherits
whatever its processes leave behind, and kills that too. Their folder, if they have one,
goes last.
"""

import ctypes
import gc
import importlib
import json
import os
import selectors
import shutil
import signal
import socket
import sys
import time
import traceback
from contextlib import suppress

from distlab.processes import child
from distlab.processes.wire import Disconnected, receive_request, send_frame

__all__ = ["serve"]

_PR_SET_CHILD_SUBREAPER = 36


class Session:
    """One owner's processes: pid -> the owner's index for it, and their folder."""

    def __init__(self, sock: socket.socket):
        self.sock = sock
        self.processes = {}
        self.folder = None
        self.closing = False

    def tell(self, **news) -> None:
        """Tell the owner, unless it has gone."""
        try:
            send_frame(self.sock, json.dumps(news).encode())
        except Disconnected:
            self.closing = True

    def end(self) -> None:
        """Remove the folder; then, by the end of the session, tell that all is gone."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
        self.sock.close()


class Server:
    """The loop that forks, reaps and kills."""

    def __init__(self, master: socket.socket, kernel_pid: int, start_method: str):
        self.master = master
        self.kernel_pid = kernel_pid
        self.start_method = start_method
        self.sessions = set()
        self.selector = selectors.DefaultSelector()
        self.selector.register(master, selectors.EVENT_READ, self._open_session)
        self._watch_children()
        self._watch_kernel()

    def _watch_children(self):
        ours, wakeup = socket.socketpair()
        for sock in (ours, wakeup):
            sock.setblocking(False)
        signal.set_wakeup_fd(wakeup.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._wakeup = wakeup  # kept open: the C handler writes to it
        self.selector.register(ours, selectors.EVENT_READ, lambda: ours.recv(4096))

    def _watch_kernel(self):
        """Notice the kernel's death even if a fork of it holds its sockets open."""
        if hasattr(os, "pidfd_open"):
            kernel = os.pidfd_open(self.kernel_pid)
            self.selector.register(kernel, selectors.EVENT_READ, self._shut_down)

    def run(self) -> None:
        """Serve until the kernel is gone."""
        while True:
            for key, _ in self.selector.select(timeout=1.0):
                key.data()
            if os.getppid() != self.kernel_pid:
                self._shut_down()
            self._reap()
            for session in [s for s in self.sessions if s.closing]:
                self._close(session)

    def _open_session(self):
        try:
            _, (descriptor,) = receive_request(self.master)
        except Disconnected:
            self._shut_down()
        session = Session(socket.socket(fileno=descriptor))
        self.sessions.add(session)
        self.selector.register(
            session.sock, selectors.EVENT_READ, lambda: self._serve(session)
        )

    def _serve(self, session):
        try:
            payload, descriptors = receive_request(session.sock)
        except Disconnected:
            session.closing = True
            self.selector.unregister(session.sock)
            return
        request = json.loads(payload)
        session.folder = request["folder"]
        if self.start_method == "fork":
            for name in request["also"]:
                importlib.import_module(name)
        try:
            pid = os.fork()
        except OSError as error:
            session.tell(failed=request["index"], why=str(error))
        else:
            if pid == 0:
                self._become(request, descriptors)
            session.processes[pid] = request["index"]
            session.tell(started=request["index"], pid=pid)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _become(self, request, descriptors):
        """Turn this fork into the process asked for; never returns."""
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            if self.start_method == "spawn":
                child.execute(request, descriptors)
            child.live(request, descriptors)
        except BaseException:
            traceback.print_exc()  # by now into the process's own output
        finally:
            os._exit(1)

    def _close(self, session):
        """Kill what the session still has; forget it once nothing is left.

        What its processes have started may be dying still, and hold files open.
        """
        for pid in session.processes:
            os.kill(pid, signal.SIGKILL)
        if not session.processes and not self._kill_orphans():
            session.end()
            self.sessions.discard(session)

    def _reap(self):
        ended = _ended()
        if ended:
            self._kill_orphans()
        for pid, status in ended:
            for session in self.sessions:
                if pid in session.processes:
                    index = session.processes.pop(pid)
                    if not session.closing:
                        session.tell(ended=index, status=status)

    def _kill_orphans(self):
        """Kill every child that nobody asked for: what a dead process left behind.

        Returns those that there were.
        """
        known = {pid for session in self.sessions for pid in session.processes}
        orphans = set(_children()) - known
        for pid in orphans:
            os.kill(pid, signal.SIGKILL)
        return orphans

    def _shut_down(self):
        known = {pid for session in self.sessions for pid in session.processes}
        while living := known | set(_children()):
            for pid in living:
                os.kill(pid, signal.SIGKILL)
            known -= {pid for pid, _ in _ended()}
            time.sleep(0.001)
        for session in self.sessions:
            session.end()
        os._exit(0)


def _ended():
    """Return (pid, exit code) of every child that has ended since the last time."""
    ended = []
    with suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            ended.append((found[0], os.waitstatus_to_exitcode(found[1])))
    return ended


def _children():
    """Return the pids of this process's children, where the system lists them."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            return [int(pid) for pid in file.read().split()]
    except OSError:
        return []


def serve(
    descriptor: int, kernel_pid: int, start_method: str, preload: list[str]
) -> None:
    """Run the server on an inherited socket; called in a fresh interpreter."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    os.setpgid(0, 0)  # who kills the kernel's whole group leaves one to clean up
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    if start_method == "fork":
        for name in preload:
            importlib.import_module(name)
    gc.collect()
    gc.freeze()  # keep the collector from touching, and so copying, the shared pages
    Server(socket.socket(fileno=descriptor), kernel_pid, start_method).run()
