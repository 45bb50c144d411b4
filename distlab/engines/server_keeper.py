"""The supervisor process of a store's servers: it starts, watches and kills them.

    notebook              supervisor             servers
    ────────              ──────────             ───────
    Servers ── frames ──▶ fork, exec, signals ─▶ etcd, redis-server, postgres
            ◀─ answers ─┤ their output, ends ◀───┤
                        └ links between them ────┘

It handles a server's death or full output pipe at once, whatever the notebook is busy
with, and keeps its log in memory. The servers die with the supervisor, the supervisor
with the process server, and that with the notebook. Orphans of a dead server become the
supervisor's children, which it kills.
"""

import asyncio
import ctypes
import json
import os
import pwd
import shutil
import signal
import sys
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from distlab.engines.partition_proxy import Links
from distlab.processes import Child
from distlab.processes.child import die_with
from distlab.processes.child_processes import children, ended_children

__all__ = ["main"]

_PR_SET_CHILD_SUBREAPER = 36
_IPC_RMID = 0
_CLONE_NEWIPC = 0x08000000
_LINES = 500


@dataclass
class _Server:
    """A server's process, its exit status, and the last lines of its output.

    earlier: the last lines of processes in the same place before this one.
    """

    pid: int | None = None
    output: int | None = None
    status: int | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    lines: deque = field(default_factory=lambda: deque(maxlen=_LINES))
    earlier: list = field(default_factory=list)
    rest: bytes = b""

    def last_lines(self):
        """Return the last lines of all processes in this place."""
        return [*self.earlier, *self.lines][-_LINES:]


def main(child: Child) -> None:
    """Supervise servers as the owner's frames request, until the owner ends."""
    order = json.loads(child.receive())
    why = _make_folder(order["folder"], order["user"])
    child.send(json.dumps({"number": 0, "answer": why}).encode())
    if why is not None:
        return
    if order["user"] is not None:
        _become(order["user"])
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    asyncio.run(_ServerKeeper(child).serve())


def _make_folder(path, owner):
    """Make the folder of all files; return None, or the reason why that failed."""
    try:
        os.mkdir(path, 0o700)
        if owner is not None:
            shutil.chown(path, owner)
    except OSError as error:
        return error.strerror
    return None


def _become(user):
    """Change from root to `user`, as some servers refuse to run as root."""
    owner, them = os.getppid(), pwd.getpwnam(user)
    if sys.platform == "linux":
        # Where root may do that: shared memory then ends with the last process.
        ctypes.CDLL(None).unshare(_CLONE_NEWIPC)
    os.setgroups([])
    os.setgid(them.pw_gid)
    os.setuid(them.pw_uid)
    die_with(owner)  # again, as the change of user has cleared it


class _ServerKeeper:
    """The supervisor of all servers; it answers every request once, by its number."""

    def __init__(self, child):
        self._child = child
        self._servers = {}
        self._links = Links()
        self._tasks = set()
        self._shared = None  # (postmaster.pid, id of the segment that was freed)

    async def serve(self):
        """Serve requests forever; the end of the owner ends this process."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGCHLD, self._reap)
        loop.add_reader(self._child.fileno(), self._take)
        await asyncio.Event().wait()

    def _take(self):
        for frame in self._child.received():
            request = json.loads(frame)
            self._keep(self._answer(**request))

    def _keep(self, work):
        """Run a coroutine as a task, and keep a reference until it is done."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)  # the loop itself has only a weak reference
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, number, what, args):
        try:
            answer = {"answer": await getattr(self, what)(*args)}
        except (OSError, KeyError) as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        self._child.send(json.dumps({"number": number} | answer).encode())

    async def listener(self, path, target, dialer):
        """Open a listener for a server; return its port."""
        return await self._links.open(path, target, dialer)

    async def split(self, sides):
        """Hold back all bytes between members on different sides."""
        self._links.split(sides)

    async def delay(self, member, delay_s):
        """Delay all bytes to and from a member by `delay_s`."""
        self._links.delay(member, delay_s)

    async def name(self, named):
        """Set the members' own ids."""
        self._links.name(named)

    async def start(self, name, command, environment, directory):
        """Start a server once an earlier one of its name has ended; return the pid."""
        before = self._servers.get(name)
        if before is not None:
            await before.ended.wait()
            await self._until_nothing_is_left()
            self._listen(before)
        server = _Server(earlier=before.last_lines() if before else [])
        output, theirs = os.pipe()
        server_keeper = os.getpid()
        server.pid = os.fork()
        if server.pid == 0:
            _execute(server_keeper, command, environment, directory, theirs)
        os.close(theirs)
        os.set_blocking(output, False)
        server.output = output
        self._servers[name] = server
        asyncio.get_running_loop().add_reader(output, self._listen, server)
        return server.pid

    async def kill(self, name):
        """Kill a server and all its descendants; return when none is left."""
        server = self._servers[name]
        if server.status is None:
            os.kill(server.pid, signal.SIGKILL)
        await server.ended.wait()
        await self._until_nothing_is_left()

    async def signal(self, name, number):
        """Send a signal to a running server, and to all its descendants."""
        server = self._servers[name]
        if server.status is None:
            for pid in [server.pid, *children(server.pid)]:
                with suppress(ProcessLookupError):  # a server's helper comes and goes
                    os.kill(pid, number)

    async def states(self):
        """Return name -> pid and exit status, None for one that runs."""
        return {name: (s.pid, s.status) for name, s in self._servers.items()}

    async def free_shared_memory(self, data):
        """Free PostgreSQL's present shared memory segment, and each later one."""
        if self._shared is None:
            self._shared = Path(data, "postmaster.pid"), None
            self._keep(self._free_forever())
        self._free()

    async def _free_forever(self):
        while True:
            self._free()
            await asyncio.sleep(0.02)

    def _free(self):
        """Mark the segment for removal, together with the last process that uses it.

        Otherwise it would remain after a kill -9. PostgreSQL uses it to prevent a
        second server on the same files, which does not occur here.
        """
        described, freed = self._shared
        try:
            *_, number = described.read_text().splitlines()[6].split()
        except (OSError, IndexError, ValueError):
            return  # there is no server, or it has not written the id yet
        if number != freed:
            ctypes.CDLL(None).shmctl(int(number), _IPC_RMID, None)
            self._shared = described, number

    async def log(self, name, since_start=False):
        """Return the last lines that a server has printed, before its restarts too."""
        server = self._servers.get(name, _Server())
        self._listen(server)
        lines = server.lines if since_start else server.last_lines()
        return [line.decode(errors="replace") for line in lines]

    def _listen(self, server):
        """Read the available output of a server into its lines."""
        while server.output is not None:
            try:
                printed = os.read(server.output, 65536)
            except BlockingIOError:
                return
            *lines, server.rest = (server.rest + printed).split(b"\n")
            server.lines.extend(lines)
            if not printed:
                server.lines.extend([server.rest] if server.rest else [])
                asyncio.get_running_loop().remove_reader(server.output)
                os.close(server.output)
                server.output = None

    def _reap(self):
        ended = dict(ended_children())
        for server in self._servers.values():
            if server.status is None and server.pid in ended:
                server.status = ended[server.pid]
                server.ended.set()
        if self._shared is not None:
            self._free()
        self._kill_orphans()

    def _kill_orphans(self):
        known = {s.pid for s in self._servers.values() if s.status is None}
        orphans = set(children(os.getpid())) - known
        for pid in orphans:
            os.kill(pid, signal.SIGKILL)
        return orphans

    async def _until_nothing_is_left(self):
        while self._kill_orphans():
            await asyncio.sleep(0.005)
            self._reap()


def _execute(server_keeper, command, environment, directory, output):
    """Execute the command in a fork of the supervisor."""
    try:
        die_with(server_keeper)
        os.setpgid(0, 0)  # so that Ctrl-C in the notebook does not reach it
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.chdir(directory)
        os.execve(command[0], command, environment)
    except OSError as error:
        os.write(output, f"{command[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(127)
