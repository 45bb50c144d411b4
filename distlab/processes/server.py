"""The process server: imports what every process needs, then forks on request.

It runs no code of the user's. Requests come over sessions, socket pairs that the kernel
sends it; each session's processes are killed when the session closes, and everything
closes when the kernel is gone. As a child subreaper the server inherits the orphans of
its processes, and kills them too. The session's folder, if there is one, is removed
last.
"""

import ctypes
import gc
import glob
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
from collections.abc import Iterable
from contextlib import suppress

from distlab.processes import child
from distlab.processes.child_processes import children, ended_children, usage
from distlab.processes.folders import remove_orphaned
from distlab.processes.memory import use_large_pages
from distlab.processes.wire import Disconnected, receive_request, send_frame

__all__ = ["Place", "Server", "be_subreaper", "import_for_forks", "serve"]

_PR_SET_CHILD_SUBREAPER = 36


class OwnerSession:
    """One owner's processes: pid -> the owner's index for it, and their folders."""

    def __init__(self, sock: socket.socket):
        self.sock = sock
        self.processes = {}
        self.folders = []
        self.closing = False

    def tell(self, **event) -> None:
        """Send news to the owner, unless it is gone."""
        try:
            send_frame(self.sock, json.dumps(event).encode())
        except Disconnected:
            self.closing = True

    def end(self) -> None:
        """Remove the folders; then close the session, which reports that it is done."""
        for folder in self.folders:
            shutil.rmtree(folder, ignore_errors=True)
        self.sock.close()


class Place:
    """Hooks of a server for its surroundings; here they do nothing special.

    TICK_S: the longest time in seconds between two calls of `tick`.
    """

    TICK_S = 1.0

    def tick(self) -> None:
        """Do periodic work."""

    def idle(self) -> None:
        """Do deferred work: there is no process, and for `TICK_S` no request."""

    def fork(self, request: dict) -> int:
        """Fork the process of a request; return its pid, 0 in the fork."""
        return os.fork()

    def enter(self, request: dict) -> None:
        """Restrict the new process; called in the fork."""

    def bereaved(self) -> None:
        """Clear up after orphans of a dead process, which have been killed."""
        remove_orphaned()

    def leaving(self) -> None:
        """Prepare for the server's end; afterwards the server kills every process."""


class _Warm(Place):
    """A server with large imports, forked again and again."""

    TICK_S = 0.5
    _settled = False

    def idle(self):
        """Make later forks cheaper, once."""
        if not self._settled:
            self._settled = True
            # The first optimizer imports it, a second in each process. Not where there
            # is a GPU: forks cannot use CUDA once their parent has looked for it.
            if "torch" in sys.modules and not glob.glob("/dev/nvidia[0-9]*"):
                import_for_forks(["torch._dynamo"])
            use_large_pages()


def import_for_forks(modules: Iterable[str]) -> None:
    """Import modules, whose objects the collector then leaves alone.

    It would take a quarter of torch's import, and touch pages shared with forks, which
    copies them.
    """
    gc.disable()
    for name in modules:
        importlib.import_module(name)
    gc.freeze()
    gc.enable()


class Server:
    """The loop that forks, reaps and kills.

    kernel: a descriptor that is readable when the kernel is gone, or None.
    kernel_pid: the parent's pid, as long as the parent is the kernel.
    """

    def __init__(
        self,
        master: socket.socket,
        kernel: int | None,
        kernel_pid: int,
        place: Place | None = None,
    ):
        self.master = master
        self.kernel_pid = kernel_pid
        self.place = place or Place()
        self.sessions = set()
        self._bereaved = False
        self.selector = selectors.DefaultSelector()
        self.selector.register(master, selectors.EVENT_READ, self._open_session)
        self._watch_children()
        if kernel is not None:  # its death is noticed even if a fork of it lives
            self.selector.register(kernel, selectors.EVENT_READ, self._shut_down)

    def _watch_children(self):
        ours, wakeup = socket.socketpair()
        for sock in (ours, wakeup):
            sock.setblocking(False)
        signal.set_wakeup_fd(wakeup.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._wakeup = wakeup  # kept open: the C handler writes to it
        self.selector.register(ours, selectors.EVENT_READ, lambda: ours.recv(4096))

    def run(self) -> None:
        """Serve until the kernel is gone."""
        while True:
            wanted = self.selector.select(timeout=self.place.TICK_S)
            for key, _ in wanted:
                key.data()
            if not wanted and not any(s.processes for s in self.sessions):
                self.place.idle()
            self.place.tick()
            if os.getppid() != self.kernel_pid:
                self._shut_down()
            self._reap()
            for session in [s for s in self.sessions if s.closing]:
                self._close(session)

    def _open_session(self):
        try:
            preload, (descriptor,) = receive_request(self.master)
        except Disconnected:
            self._shut_down()
        self.adopt(socket.socket(fileno=descriptor), json.loads(preload))

    def adopt(self, sock: socket.socket, modules: list[str]) -> None:
        """Serve a session whose processes need these modules."""
        import_for_forks(modules)
        session = OwnerSession(sock)
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
        if "signal" in request:
            self._signal(session, **request)
            return
        if "usage" in request:
            session.tell(usage=usage(session.processes))
            return
        session.folders = request["folders"]
        if request["start_method"] == "fork":
            import_for_forks(request["also"])
        try:
            pid = self.place.fork(request)
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

    def _signal(self, session, signal, number):
        """Send a signal to a process; its pid cannot be reused before `_reap`."""
        for pid, index in session.processes.items():
            if index == signal:
                os.kill(pid, number)

    def _become(self, request, descriptors):
        """Turn this fork into the requested process; never returns."""
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self.place.enter(request)
            if request["start_method"] == "spawn":
                child.execute(request, descriptors)
            child.live(request, descriptors)
        except BaseException:
            traceback.print_exc()  # by now into the process's own output
        finally:
            os._exit(1)

    def _close(self, session):
        """Kill the session's remaining processes; forget it once none is left.

        Descendants of its processes may still be exiting, and hold files open.
        """
        for pid in session.processes:
            os.kill(pid, signal.SIGKILL)
        if not session.processes and not self._kill_orphans():
            self._clear()
            with suppress(KeyError):  # it was read to its end already
                self.selector.unregister(session.sock)
            session.end()
            self.sessions.discard(session)

    def _reap(self):
        ended = ended_children()
        if ended:
            self._kill_orphans()
        for pid, status in ended:
            sessions = [s for s in self.sessions if pid in s.processes]
            for session in sessions:
                index = session.processes.pop(pid)
                if not session.closing:
                    session.tell(ended=index, status=status)
            self._bereaved = self._bereaved or not sessions

    def _kill_orphans(self):
        """Kill every child that no session started: the orphans of a dead process.

        Returns: their pids.
        """
        known = {pid for session in self.sessions for pid in session.processes}
        orphans = set(children(os.getpid())) - known
        for pid in orphans:
            os.kill(pid, signal.SIGKILL)
        return orphans

    def _shut_down(self):
        self.place.leaving()
        known = {pid for session in self.sessions for pid in session.processes}
        while living := known | set(children(os.getpid())):
            for pid in living:
                os.kill(pid, signal.SIGKILL)
            ended = {pid for pid, _ in ended_children()}
            self._bereaved = self._bereaved or bool(ended - known)
            known -= ended
            time.sleep(0.001)
        self._clear()
        for session in self.sessions:
            session.end()
        os._exit(0)

    def _clear(self):
        if self._bereaved:
            self._bereaved = False
            self.place.bereaved()


def be_subreaper() -> None:
    """Make this process the parent of orphaned descendants (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _while_alive(kernel_pid, names):
    """Yield the names; end this process once the kernel is gone."""
    for name in names:
        if os.getppid() != kernel_pid:
            os._exit(0)
        yield name


def serve(descriptor: int, kernel_pid: int, preload: list[str]) -> None:
    """Run the server on an inherited socket; called in a process of its own."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    os.setpgid(0, 0)  # a kill of the kernel's whole group spares the server
    be_subreaper()
    import_for_forks(_while_alive(kernel_pid, preload))
    kernel = os.pidfd_open(kernel_pid) if hasattr(os, "pidfd_open") else None
    master = socket.socket(fileno=descriptor)
    Server(master, kernel, kernel_pid, _Warm() if preload else None).run()
