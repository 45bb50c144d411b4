"""`Jail`: the owner's side: it opens a jail, starts processes in it, and closes it."""

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from distlab.errors import JailExceeded, JailFailed
from distlab.jail import system
from distlab.jail.init import Plan, be_init
from distlab.jail.isolation import best_isolation, words
from distlab.jail.limits import Limits
from distlab.jail.root import HOME
from distlab.jail.users import kill_all_of, users_from
from distlab.processes import anonymous_file
from distlab.processes.child import die_with
from distlab.processes.folders import new_folder
from distlab.processes.server_handle import ServerHandle
from distlab.processes.wire import (
    Disconnected,
    FrameReader,
    receive_frame,
    send_request,
)

__all__ = ["Jail"]

_OPENS_S, _CLOSES_S = 20.0, 2.0
_TAKEN_OVER = ("LANG", "LC_ALL", "LC_CTYPE", "TZ", "DISTLAB_BUSY")


class Jail:
    """Processes that can do nothing to anything outside.

    Open it before anything is known here that they must not know: what this process
    has in memory now, they have too. What lies in `folder` may be anything: whoever
    reads it from outside opens no links there.

    isolation: one of the levels, else the best there is. files: a folder; a copy of its
    files is in the home. folder: seen from both sides at the same path. home: the
    working folder of the processes, as they see it.

    Raises: JailFailed if there is no isolation here, or the jail cannot be made.
    """

    def __init__(
        self,
        limits: Limits = Limits(),  # noqa: B008
        *,
        isolation: str | None = None,
        files: str | os.PathLike | None = None,
    ):
        self.isolation = isolation or best_isolation()
        if isolation is None and self.isolation == "none":
            raise JailFailed(_NONE)
        self.limits = limits
        self.folder = new_folder(in_memory=True)
        self.home = HOME
        if self.isolation != "namespaces":
            self.home = os.path.join(self.folder, "home")
        self._exceeded, self._uid, self._closed = "", os.getuid(), False
        self._owner_pid = os.getpid()
        errors = anonymous_file("jail-errors")
        master, theirs = socket.socketpair()
        news, their_news = socket.socketpair()
        owner = os.pidfd_open(os.getpid())
        plan = Plan(
            isolation=self.isolation,
            limits=limits,
            folder=self.folder,
            home=self.home,
            files=None if files is None else os.fspath(files),
            uid=self._uid,
            master=theirs.fileno(),
            owner=owner,
            news=their_news.fileno(),
            errors=errors,
        )
        self._news = news
        self._server = _JailServer(self, master, errors)
        try:
            self._pid = _fork_init(plan)
        except OSError as error:
            raise JailFailed(f"the jail could not be made: {error}") from error
        finally:
            theirs.close()
            their_news.close()
            os.close(owner)
        self._wait_ready()

    def _wait_ready(self):
        self._news.settimeout(_OPENS_S)
        try:
            said = json.loads(receive_frame(self._news))
        except Disconnected:
            said = {}  # it ended, or its time did
        if "ready" not in said:
            why = said.get("failed") or self._server.said()[-500:] or "it was killed"
            self.close()
            raise JailFailed(f"the jail could not be made: {why}")
        self._news.settimeout(None)
        self._uid = said["ready"]
        self._reader = FrameReader(self._news)

    @contextlib.contextmanager
    def inhabit(self) -> Iterator["Jail"]:
        """Have every process that this one starts live in the jail, for the body.

        Temporary files of this process are in the exchange folder meanwhile.
        """
        before, tempfile.tempdir = tempfile.tempdir, self.folder
        try:
            with ServerHandle.all_from(self._server):
                yield self
        finally:
            tempfile.tempdir = before

    def exceeded(self) -> str:
        """Return the sentence that says why the jail has ended; "" if it has not.

        Such as "it used more than 2 GiB of memory".
        """
        if not self._closed:
            self._hear()
        return self._exceeded

    def _hear(self):
        with contextlib.suppress(Disconnected):
            for frame in self._reader.read():
                self._exceeded = json.loads(frame).get("exceeded", "")

    def close(self) -> None:
        """End everything in the jail, whatever it did; return when all is gone."""
        if self._closed:
            return
        if hasattr(self, "_reader"):
            self._hear()
        self._closed = True
        with contextlib.suppress(OSError):  # it has gone already
            self._news.send(b"!")
        self._server.master.close()
        if self._owner_pid == os.getpid():
            self._end_init()
            if self.isolation == "unprivileged user":
                kill_all_of(users_from(self._uid))
            shutil.rmtree(self.folder, ignore_errors=True)
        self._news.close()
        os.close(self._server.errors)

    def _end_init(self):
        deadline = time.monotonic() + _CLOSES_S
        with contextlib.suppress(ChildProcessError):
            handle = os.pidfd_open(self._pid)
            try:
                left = deadline - time.monotonic()
                if not select.select([handle], [], [], left)[0]:
                    os.kill(self._pid, signal.SIGKILL)
                os.waitpid(self._pid, 0)
            finally:
                os.close(handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __repr__(self):
        state = "closed" if self._closed else "open"
        return f"Jail({self.isolation!r}, {state}): {words(self.isolation)}"


_NONE = (
    "there is no way here to keep code that is not yours from your files and "
    "processes.\n\n    On Linux, allow user namespaces (in a container, start it with "
    "the rights to make\n    them), or run as root. On other systems, use a container "
    "or WSL 2."
)


class _JailServer(ServerHandle):
    """The init of a jail, as `Processes` know their server."""

    most_bytes = 2**28
    answered = True

    def __init__(self, jail, master, errors):
        self.jail, self.master, self.errors = jail, master, errors

    def surroundings(self):
        """Return what processes in the jail are given: nothing of this process's."""
        home, folder = self.jail.home, self.jail.folder
        shared = self.jail.isolation == "namespaces"
        kept = {k: os.environ[k] for k in _TAKEN_OVER if k in os.environ}
        environment = {
            "PATH": f"{os.path.dirname(sys.executable)}:/usr/local/bin:/usr/bin:/bin",
            "HOME": home,
            "TMPDIR": "/tmp" if shared else folder,
            "LANG": "C.UTF-8",
            "USER": "learner",
            "LOGNAME": "learner",
            "PYTHONHASHSEED": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "MPLBACKEND": "agg",
        }
        return {
            "group": None,  # each leads a session
            "environment": environment | kept,
            "path": sys.path,
            "directory": home,
        }

    def new_folder(self):
        """Make a folder that its processes may write to, in the exchange folder."""
        folder = tempfile.mkdtemp(dir=self.jail.folder)
        if os.getuid() == 0:
            # a process of the jail may have put a link in its place
            os.chown(folder, self.jail._uid, self.jail._uid, follow_symlinks=False)
        return folder

    def signal(self, session, index, pid, number):
        """Have the init send a signal, since its pids mean nothing here."""
        request = json.dumps({"signal": index, "number": int(number)}).encode()
        with contextlib.suppress(OSError):  # the jail is gone
            send_request(session, request, [])

    def failure(self):
        """Return the error that says why the jail is gone."""
        why = self.jail.exceeded()
        if why:
            return JailExceeded(why)
        return super().failure()


def _fork_init(plan):
    """Fork the init; it is the first of its own pids, if there are to be any."""
    if plan.isolation != "namespaces":
        pid = os.fork()
    elif os.getuid() == 0:
        pid = _fork_in_new_pids()
    else:
        pid = _fork_between()
    if pid == 0:
        be_init(plan)
    return pid


def _fork_in_new_pids():
    here, pid = os.open("/proc/thread-self/ns/pid", os.O_RDONLY), None
    system.unshare(system.NEW_PIDS)  # of the children of this thread
    try:
        pid = os.fork()
    finally:
        if pid != 0:
            system.enter(here, system.NEW_PIDS)
        os.close(here)
    return pid


def _fork_between():
    """Fork a process that may make namespaces, since it is the root of its users.

    It stays, does nothing, and ends when the init, its child, has ended.
    """
    user, group = os.getuid(), os.getgid()
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        system.unshare(system.NEW_USERS | system.NEW_PIDS)
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
        if os.fork() == 0:
            die_with(0)  # a parent outside has no pid here
            return 0
        os.closerange(0, 2**16)
        os.wait()
    finally:
        if os.getpid() != 1:
            os._exit(0)
