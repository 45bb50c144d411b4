"""The init of a jail: makes the jail around itself, and then serves its processes.

It is a fork of the owner and has all its rights inside. It never runs, reads or imports
anything that came from a process of the jail.
"""

import contextlib
import ctypes
import gc
import json
import os
import posix
import shutil
import signal
import socket
import sys
import time
import traceback
from pathlib import Path
from typing import NamedTuple

from distlab.jail import root, system
from distlab.jail.limits import Limits, set_limits
from distlab.jail.users import descendants, first_user, kill_all_of, pids_of, users_from
from distlab.jail.watch import Watch
from distlab.processes import child
from distlab.processes.seccomp import forbid
from distlab.processes.server import Place, Server
from distlab.processes.server_handle import ServerHandle, trusted_path
from distlab.processes.wire import Disconnected, send_frame

__all__ = ["Plan", "be_init"]

_SHARED_PAGES = "16384"  # of System V's shared memory
_kept = []  # objects of the owner that would close a descriptor if they were forgotten


class Plan(NamedTuple):
    """What an init is told by its owner, before it is forked.

    uid: the user that it is, if it cannot have users of its own.
    owner: a descriptor that is readable once the owner is gone.
    news: where to tell it things.
    """

    isolation: str
    limits: Limits
    folder: str
    home: str
    files: str | None
    uid: int
    master: int
    owner: int
    news: int
    errors: int


def be_init(plan: Plan) -> None:
    """Be the init of a jail, in a fork of its owner; never returns."""
    news = None
    try:
        _forget_owner(plan)
        news = socket.socket(fileno=plan.news)
        if plan.isolation != "none" and os.getuid() == 0:
            plan = plan._replace(uid=first_user(int(os.readlink("/proc/self"))))
            os.chown(plan.folder, plan.uid, plan.uid)
        parent = os.open(os.path.dirname(plan.folder), os.O_RDONLY)
        place = _Jailed(plan, news, parent)
        place.build()
        send_frame(news, json.dumps({"ready": place.plan.uid}).encode())
        Server(socket.socket(fileno=plan.master), plan.owner, os.getppid(), place).run()
    except BaseException as error:
        traceback.print_exc()
        if news is not None:
            with contextlib.suppress(Disconnected):
                send_frame(news, json.dumps({"failed": str(error)}).encode())
    finally:
        os._exit(1)


def _forget_owner(plan):
    """Let go of everything of the owner's that is not meant for here."""
    _kept.extend((child.inside(), sys.modules["__main__"], ServerHandle.forget_all()))
    _kept.extend((sys.stdin, sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__))
    gc.freeze()
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    signal.set_wakeup_fd(-1)
    signal.pthread_sigmask(signal.SIG_SETMASK, set())
    os.setsid()
    child.keep_only([plan.master, plan.owner, plan.news, plan.errors])
    nothing = os.open(os.devnull, os.O_RDWR)
    for source, target in ((nothing, 0), (plan.errors, 1), (plan.errors, 2)):
        os.dup2(source, target)
    os.close(nothing)
    sys.stdout = sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
    _forget_environment()
    sys.path[:] = trusted_path()
    os.umask(0o022)


def _forget_environment():
    """Overwrite the environment: its forks could read it from their own memory."""
    values = [*posix.environ.values(), *os.environ._data.values()]
    os.environ.clear()
    posix.environ.clear()
    for value in values:
        if len(value) > 1:  # Python shares those of one byte
            ctypes.memset(id(value) + bytes.__basicsize__ - 1, 0, len(value))
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end = int(fields[47]), int(fields[48])
    if end > start:
        ctypes.memset(start, 0, end - start)


class _Jailed(Place):
    """The jail as its server knows it."""

    TICK_S = 0.05

    def __init__(self, plan, news, parent):
        self.plan, self.news, self._parent = plan, news, parent
        self.apart = plan.isolation == "namespaces"
        self._places = {}  # pid of a process that is alone -> its part of the disk
        self._number, self._looked_at = 0, 0.0

    def build(self):
        """Make the jail."""
        plan = self.plan
        Path("/proc/self/oom_score_adj").write_text("900")
        with contextlib.suppress(OSError):  # only root may
            first = os.SCHED_RR | os.SCHED_RESET_ON_FORK
            os.sched_setscheduler(0, first, os.sched_param(1))
        if self.apart:
            kinds = system.NEW_MOUNTS | system.NEW_NET | system.NEW_IPC
            system.unshare(kinds | system.NEW_NAMES)
            socket.sethostname("jail")
            system.loopback_up()
            root.build(plan.folder, plan.limits.disk_bytes, plan.uid, plan.files)
            with contextlib.suppress(OSError):  # else the watch sees it once it is used
                Path("/proc/sys/kernel/shmall").write_text(_SHARED_PAGES)
            system.drop_bounding()
        else:
            system.be_subreaper()
            root.fill(plan.home, plan.files, plan.uid)
        system.set_dumpable(False)
        disks = [root.DISK] if self.apart else []
        self._watch = Watch(
            plan.limits, self._members, disks=disks, folders=[plan.folder]
        )

    def _members(self):
        """Return the pids of all processes in the jail but this one."""
        if self.apart:
            names = os.listdir("/proc")
            return [int(name) for name in names if name.isdigit() and name != "1"]
        if self.plan.isolation == "none":
            return descendants()
        return pids_of(users_from(self.plan.uid))

    def tick(self):
        """Look whether all is within its limits; end the jail if not."""
        now = time.monotonic()
        if now - self._looked_at < self.TICK_S:
            return
        self._looked_at = now
        if sentence := self._watch.exceeded():
            with contextlib.suppress(Disconnected):
                send_frame(self.news, json.dumps({"exceeded": sentence}).encode())
            self._end(orphaned=False)
            os._exit(0)

    def fork(self, request):
        """Fork a process, the first of its own pids if it is to be alone."""
        if not request["alone"]:
            return os.fork()
        self._number += 1
        self._clear_places()
        if not self.apart:
            return os.fork()
        here, pid = os.open("/proc/self/ns/pid", os.O_RDONLY), None
        system.unshare(system.NEW_PIDS)
        try:
            pid = os.fork()
        finally:
            if pid != 0:
                system.enter(here, system.NEW_PIDS)
            os.close(here)
        self._places[pid] = os.path.join(root.DISK, self._name())
        return pid

    def _name(self):
        return f"alone-{self._number}"

    def _clear_places(self):
        for pid in [pid for pid in self._places if not os.path.exists(f"/proc/{pid}")]:
            shutil.rmtree(self._places.pop(pid), ignore_errors=True)

    def enter(self, request):
        """Become a user of the jail's own, who may do nothing."""
        plan, user = self.plan, self.plan.uid
        if request["alone"]:
            users = users_from(user)[1:] or [user]
            user = users[self._number % len(users)]
        if request["alone"] and self.apart:
            kinds = system.NEW_MOUNTS | system.NEW_NET | system.NEW_IPC
            system.unshare(kinds)
            system.loopback_up()
            root.private_disk(self._name(), user, plan.folder)
        os.setsid()  # Linux shares its processors among sessions: the init has its part
        set_limits(plan.limits)
        if plan.isolation != "none":
            if os.getuid() == 0:
                os.setgroups([])
                os.setresgid(user, user, user)
                os.setresuid(user, user, user)
            system.drop_capabilities()
            system.no_new_privileges()
            forbid(alone=request["alone"])
        system.set_dumpable(True)

    def bereaved(self):
        """Leave it: what is in here goes with the jail, and is of who knows whom."""

    def leaving(self):
        """End everything; clear up, too, if there is no owner who will."""
        self._end(orphaned=not self._dismissed())

    def _dismissed(self):
        """Return whether the owner says that this is the end; a dead one does not."""
        with contextlib.suppress(OSError):
            return bool(self.news.recv(1, socket.MSG_DONTWAIT))
        return False

    def _end(self, *, orphaned):
        if self.apart and not orphaned:
            os._exit(0)  # the system ends all the others before it tells
        if self.apart:
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)
        elif self.plan.isolation != "none":
            kill_all_of(users_from(self.plan.uid))
        if orphaned:
            root.empty(self.plan.folder)
            if self.apart:
                system.detach(self.plan.folder)
            with contextlib.suppress(OSError):
                os.rmdir(os.path.basename(self.plan.folder), dir_fd=self._parent)
        if self.apart:
            os._exit(0)
