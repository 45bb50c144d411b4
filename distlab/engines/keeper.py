"""The process that keeps a store's servers: starts, watches and kills them.

    notebook              keeper                 servers
    ────────              ──────                 ───────
    Servers ── frames ──▶ fork, exec, signals ─▶ etcd, redis-server, postgres
            ◀─ answers ─┤ their output, ends ◀───┤
                        └ links between them ────┘

A server's death or its full output pipe are noticed here at once, whatever the notebook
is busy with, and its log is kept in memory. The servers die with the keeper, the keeper
with the process server, and that with the notebook. What a dead server leaves behind is
the keeper's child then, and killed.
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

from distlab.engines.links import Links
from distlab.processes import Child
from distlab.processes.child import die_with
from distlab.processes.offspring import children, ended_children

__all__ = ["main"]

_PR_SET_CHILD_SUBREAPER = 36
_IPC_RMID = 0
_CLONE_NEWIPC = 0x08000000
_LINES = 500


@dataclass
class _Server:
    """A server's process, how it ended, and the last of what it has printed."""

    pid: int | None = None
    output: int | None = None
    status: int | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    lines: deque = field(default_factory=lambda: deque(maxlen=_LINES))
    rest: bytes = b""


def main(child: Child) -> None:
    """Keep servers as the owner's frames say, until the owner is gone."""
    order = json.loads(child.receive())
    why = _make_folder(order["folder"], order["user"])
    child.send(json.dumps({"number": 0, "answer": why}).encode())
    if why is not None:
        return
    if order["user"] is not None:
        _become(order["user"])
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    asyncio.run(_Keeper(child).serve())


def _make_folder(path, owner):
    """Make the folder of all files; return None, or why it cannot be made."""
    try:
        os.mkdir(path, 0o700)
        if owner is not None:
            shutil.chown(path, owner)
    except OSError as error:
        return error.strerror
    return None


def _become(user):
    """Give up being root, which some servers refuse to be."""
    owner, them = os.getppid(), pwd.getpwnam(user)
    if sys.platform == "linux":
        # Where root may do that: what is shared then ends with the last process.
        ctypes.CDLL(None).unshare(_CLONE_NEWIPC)
    os.setgroups([])
    os.setgid(them.pw_gid)
    os.setuid(them.pw_uid)
    die_with(owner)  # which a change of user has made it forget


class _Keeper:
    """Does what the owner asks for; every request is answered once, by its number."""

    def __init__(self, child):
        self._child = child
        self._servers = {}
        self._links = Links()
        self._tasks = set()
        self._shared = None  # where PostgreSQL says what it has, and what was freed

    async def serve(self):
        """Take requests for ever; the end of the owner ends this process."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGCHLD, self._reap)
        loop.add_reader(self._child.fileno(), self._take)
        await asyncio.Event().wait()

    def _take(self):
        for frame in self._child.received():
            request = json.loads(frame)
            self._keep(self._answer(**request))

    def _keep(self, work):
        """Do some work beside everything else."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)  # the loop by itself would forget it
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, number, what, args):
        try:
            answer = {"answer": await getattr(self, what)(*args)}
        except (OSError, KeyError) as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        self._child.send(json.dumps({"number": number} | answer).encode())

    async def door(self, path, target, dialer):
        """Open a door to a server; return its port."""
        return await self._links.open(path, target, dialer)

    async def split(self, sides):
        """Let members hear only those on their side."""
        self._links.split(sides)

    async def delay(self, member, delay_s):
        """Have all to and from a member take so long."""
        self._links.delay(member, delay_s)

    async def name(self, named):
        """Know what members call themselves."""
        self._links.name(named)

    async def start(self, name, command, environment, directory):
        """Start a server, in the place of one of that name, if that has ended."""
        before = self._servers.get(name)
        if before is not None:
            await before.ended.wait()
            await self._until_nothing_is_left()
        server = _Server(lines=before.lines if before else deque(maxlen=_LINES))
        output, theirs = os.pipe()
        keeper = os.getpid()
        server.pid = os.fork()
        if server.pid == 0:
            _execute(keeper, command, environment, directory, theirs)
        os.close(theirs)
        os.set_blocking(output, False)
        server.output = output
        self._servers[name] = server
        asyncio.get_running_loop().add_reader(output, self._listen, server)
        return server.pid

    async def kill(self, name):
        """Kill a server and all that it has started; answer when nothing is left."""
        server = self._servers[name]
        if server.status is None:
            os.kill(server.pid, signal.SIGKILL)
        await server.ended.wait()
        await self._until_nothing_is_left()

    async def signal(self, name, number):
        """Send a signal to a server that runs, and to all that it has started."""
        server = self._servers[name]
        if server.status is None:
            for pid in [server.pid, *children(server.pid)]:
                with suppress(ProcessLookupError):  # a server's helper comes and goes
                    os.kill(pid, number)

    async def states(self):
        """Return name -> pid and exit status, None for one that runs."""
        return {name: (s.pid, s.status) for name, s in self._servers.items()}

    async def free_shared_memory(self, data):
        """Free the piece of it that PostgreSQL has now, and each later one."""
        if self._shared is None:
            self._shared = Path(data, "postmaster.pid"), None
            self._keep(self._free_forever())
        self._free()

    async def _free_forever(self):
        while True:
            self._free()
            await asyncio.sleep(0.02)

    def _free(self):
        """Mark it for removal: then it goes with the last process that uses it.

        Otherwise it would stay for ever after a kill -9. PostgreSQL has it to keep a
        second server from the same files, which here nobody starts.
        """
        told, freed = self._shared
        try:
            *_, number = told.read_text().splitlines()[6].split()
        except (OSError, IndexError, ValueError):
            return  # there is no server, or it has not come so far
        if number != freed:
            ctypes.CDLL(None).shmctl(int(number), _IPC_RMID, None)
            self._shared = told, number

    async def log(self, name):
        """Return the last lines that a server has printed."""
        server = self._servers.get(name, _Server())
        self._listen(server)
        return [line.decode(errors="replace") for line in server.lines]

    def _listen(self, server):
        """Take what a server has printed by now."""
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


def _execute(keeper, command, environment, directory, output):
    """Become the command, in a fork of the keeper."""
    try:
        die_with(keeper)
        os.setpgid(0, 0)  # an interrupt of the notebook is none of its business
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.chdir(directory)
        os.execve(command[0], command, environment)
    except OSError as error:
        os.write(output, f"{command[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(127)
