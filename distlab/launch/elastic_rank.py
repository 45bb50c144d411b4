"""The inside of a rank whose world may change: leave it, join the next, continue.

    kernel ── settings, task ────────▶ rank ── "ready" ─▶ kernel
           ── world of 4, as rank 2 ─▶ joins; fn(comm, kept, *args)
           ── world 1 is over ───────▶ connections cut: its calls raise ── "left" ─▶
           ── world of 3, as rank 1 ─▶ joins; fn(comm, kept, *args) ── outcome ─▶

A rank that waits in gloo for a healthy one gets no error when a third has died, and
gloo cannot abort. So a thread receives from the kernel, and shuts down the sockets that
gloo has opened; a call that waits in gloo then fails as if all its peers had died.
"""

import contextlib
import json
import os
import queue
import socket
import stat
import threading
from collections.abc import Sequence
from concurrent.futures import wait
from dataclasses import replace

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

from distlab.calls.serialize import Arrivals
from distlab.comm import Comm
from distlab.comm.asynchronous import thread_of
from distlab.errors import InvalidArgument, WorldChanged
from distlab.launch.collective_hooks import watch
from distlab.launch.network_store import NetworkStore
from distlab.launch.outcome import outcome_of
from distlab.launch.rank import END, describe, join, torchrun_names
from distlab.patience import patience
from distlab.processes import Child
from distlab.recorder import Recorder

__all__ = ["main"]

_HEAR_S = 5.0  # from a broken connection until the kernel reports why
_TICK_S = 0.05


def main(child: Child) -> None:
    """Run one rank of successive worlds, from its settings to its end."""
    settings = json.loads(child.receive())
    torch.set_num_threads(settings["threads"])
    fn, args, faults = Arrivals(persistent=False).unpack_task(child.receive())
    member = _Member(child, settings["world_size"], faults)
    child.send(b"ready")
    while (world := member.next_world()) is not None:
        child.send(member.take_part(world, fn, args))
    if dist.is_initialized():
        dist.destroy_process_group()


class _ElasticComm(Comm):
    """A Comm whose calls raise once its world is over."""

    def __init__(self, member, *where, **how):
        super().__init__(*where, **how)
        self._over = member.over

    def next_step(self) -> None:
        """Count one call.

        Raises: WorldChanged if a rank has died or joined since the world began.
        """
        if self._over.is_set():
            raise WorldChanged("a rank has died or joined; the next world has begun.")
        super().next_step()

    def split_as(self, *_) -> None:
        """Raise an error: a group does not outlive its world.

        Raises: InvalidArgument.
        """
        raise InvalidArgument(
            "an elastic world has no subgroups: they would end with each change of it. "
            "Split a world that stays: run(fn, world_size)."
        )

    def _await(self, works):
        """Wait on a thread, which is abandoned when the world is over.

        A send that began just when its connection was cut waits in gloo forever.
        """
        waiting = self.started.beside(lambda: super(_ElasticComm, self)._await(works))
        while not wait([waiting], _TICK_S).done:
            if self._over.is_set() and not wait([waiting], _TICK_S).done:
                raise WorldChanged("a rank has died or joined during this call.")
        waiting.result()

    def _wait_until(self, look, call, sides):
        """Wait until `look` is true; raise WorldChanged if the world is over first."""

        def look_or_leave():
            if self._over.is_set():
                raise WorldChanged("a rank has died or joined during this call.")
            return look()

        return super()._wait_until(look_or_leave, call, sides)


class _Member:
    """This process, through all its worlds.

    kept: the dict that its function keeps from one world to the next.
    over: set when the present world is over.
    """

    def __init__(self, child, most, faults):
        self.kept, self.over = {}, threading.Event()
        block, *store = child.shared
        self._recorder = Recorder(child.index, most, block)
        self._store = NetworkStore(*store) if store else None
        self._faults, self._lived = faults, 0
        self._worlds, self._sockets, self._number = queue.SimpleQueue(), set(), 0
        self._last_over = -1
        self._lock, self._tell, self.comm = threading.Lock(), child.send, None
        self._leave = watch(lambda: self.comm)
        threading.Thread(target=self._listen, args=[child], daemon=True).start()

    def _listen(self, child):
        while True:
            request = child.receive()
            if request[:1] == END:
                self._worlds.put(None)
                return
            world = json.loads(request)
            if "over" not in world:
                self._worlds.put(world)
                continue
            with self._lock:
                self._last_over = world["over"]
                if self._number <= self._last_over:
                    self.over.set()
                    _cut(self._sockets)

    def next_world(self) -> dict | None:
        """Return the kernel's description of the next world; None at the end."""
        world = self._worlds.get()
        if world is not None:
            with self._lock:
                self._number = world["number"]
                self._sockets = set()
                if self._number > self._last_over:
                    self.over.clear()
        return world

    def take_part(self, world: dict, fn, args: Sequence) -> bytes:
        """Join a world and call the function in it; return the outcome."""
        self._recorder.regroup(world["rank"], world["processes"])

        def work():
            comm = self._join(world)
            self._tell(b"joined")
            comm.fail_if_planned()
            self._recorder.point("mark", f"rank {comm.rank} of {comm.world_size}")
            result = fn(comm, self.kept, *args)
            comm.started.finish()
            return result

        def described(error):
            facts = describe(error)
            broken = facts["communication"] and self.over.wait(patience(_HEAR_S))
            left = self.over.is_set() or broken
            if left and dist.is_initialized():
                dist.destroy_process_group()
            return facts | {"left": left}

        how = {"describe": described, "leave": self._leave}
        outcome = outcome_of(work, self._recorder, **how)
        self._lived += self._recorder.step
        return outcome

    def _join(self, world):
        if self.over.is_set():
            raise WorldChanged("this world was over before it began.")
        rank, world_size = world["rank"], len(world["processes"])
        os.environ.update(torchrun_names(rank, world_size))
        before = _open_sockets()
        place = world["meeting"]
        if self._store is not None:
            place = dist.PrefixStore(place, self._store)
        self._join_unless_over(rank, world_size, "gloo", place)
        with self._lock:
            self._sockets = _open_sockets() - before
            if self.over.is_set():
                _cut(self._sockets)
        self.comm = _ElasticComm(self, rank, world_size, recorder=self._recorder)
        self.comm.started.besides = threading.active_count() - 1
        self.comm.faults = [
            replace(fault, rank=rank, step=fault.step - self._lived)
            for fault in self._faults
        ]
        return self.comm

    def _join_unless_over(self, *where):
        """Join on a thread, which is abandoned if a rank dies that it waits for."""
        # torch counts the groups, failed joins too, and ranks meet under that number.
        distributed_c10d._world.group_count = 0
        thread, joined = thread_of(lambda: join(*where))
        thread.start()
        while not wait([joined], _TICK_S).done:
            if self.over.is_set():
                raise WorldChanged("a rank has died before all had joined.")
        joined.result()


def _open_sockets():
    """Return the sockets of this process, each as (inode, descriptor)."""
    found = set()
    for name in os.listdir("/dev/fd"):
        with contextlib.suppress(OSError):
            status = os.fstat(int(name))
            if stat.S_ISSOCK(status.st_mode):
                found.add((status.st_ino, int(name)))
    return found


def _cut(sockets):
    """Shut connections down, but no listening socket, since gloo would abort."""
    for _, descriptor in sockets & _open_sockets():
        with (
            contextlib.suppress(OSError),
            socket.socket(fileno=os.dup(descriptor)) as connection,
        ):
            if not connection.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                connection.shutdown(socket.SHUT_RDWR)
