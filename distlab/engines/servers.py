"""The notebook's side of a real store: its servers, by number, and their faults.

    with etcd.cluster(3) as store:
        store.kill(0)       SIGKILL, as a machine that loses its power
        store.restart(0)    the same command again, on the same files
        store.cut(1)        alone on its side of a network partition
        store.heal()        the network is whole again
        store.pause(2)      alive, and silent; resume(2) continues it

Everything is on loopback and in a temporary folder, and removed after the block,
however it ends. `store.log(0)` is the output of server 0, which a notebook never shows.
"""

import json
import os
import secrets
import signal
import threading
import time
from collections.abc import Callable, Iterable, Sequence

from distlab.calls.progress import Progress
from distlab.engines.install_paths import cannot_write, place_for_files
from distlab.engines.store_clients import drive
from distlab.errors import EngineFailed, InvalidArgument
from distlab.faults import NodeFault
from distlab.history import History
from distlab.network import Client
from distlab.patience import limit_in_words, more_patience, patience
from distlab.processes import Ended, FrameReceived, Processes

__all__ = ["Servers"]

_ANSWERS_S = 30.0
_STARTS_S = 60.0


class Servers:
    """Servers of one store, numbered from 0, under one supervisor process.

    title: the store's name. folder: the path of its files. user: whose processes they
    are, None for this process's.
    pids: the running process of every server, None where none runs.
    """

    title = "store"

    def __init__(self, count: int, *, user: str | None = None):
        self._count, self.user = count, user
        self._requests = 0
        self._began = time.monotonic()
        self._turn = threading.RLock()
        self._sides = [list(range(count))]
        self._commands = {}
        place = place_for_files(user)
        name = f"distlab-{self.title}-{secrets.token_hex(4)}"
        self.folder = os.path.join(place, name)
        self._processes = Processes(
            1,
            "distlab.engines.server_keeper:main",
            also=["distlab.engines.server_keeper"],
            private_folder=self.folder,
        )
        try:
            # The supervisor makes it, once the process server has its path to remove.
            order = {"user": user, "folder": self.folder}
            self._processes.send(0, json.dumps(order).encode())
            if why := self._answer(0, "start"):
                raise cannot_write(place, why)
            self._start_all()
        except BaseException:
            self.stop()
            raise

    def _start_all(self):
        """Start the servers, each with its command and its files."""
        raise NotImplementedError

    def __repr__(self):
        return f"{self.title}: {self._count} servers in {self.folder}"

    def __len__(self):
        return self._count

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self) -> None:
        """End all servers, remove the folder; a second call does nothing."""
        self._processes.stop()

    @property
    def pids(self) -> list[int | None]:
        """The process of each server, None where none runs."""
        states = self._ask("states")
        found = (states.get(str(member), (None, 0)) for member in range(self._count))
        return [pid if status is None else None for pid, status in found]

    @property
    def alive(self) -> list[int]:
        """The numbers of the running servers, paused ones included."""
        return [member for member, pid in enumerate(self.pids) if pid is not None]

    def kill(self, member: int) -> None:
        """Kill a server and all its processes, with SIGKILL."""
        self._ask("kill", self._name(member))

    def restart(self, member: int) -> None:
        """Start a server again, on its old files, after its end.

        Returns when it answers, which does not imply that it reaches the others.
        Raises: InvalidArgument if it runs; EngineFailed if it does not start.
        """
        if member in self.alive:
            raise InvalidArgument(
                f"{self.title} {member} runs; kill({member}) ends it."
            )
        self._start(member)
        self._until_it_answers(member)

    def pause(self, member: int) -> None:
        """Suspend a server with SIGSTOP, without closing its connections."""
        self._ask("signal", self._name(member), int(signal.SIGSTOP))

    def resume(self, member: int) -> None:
        """Continue a paused server."""
        self._ask("signal", self._name(member), int(signal.SIGCONT))

    def split(self, *sides: Iterable[int]) -> None:
        """Partition the network into sides; a server on no side is alone.

        Clients still reach every server.
        """
        sides = [[int(self._name(member)) for member in side] for side in sides]
        named = [member for side in sides for member in side]
        if len(set(named)) < len(named):
            raise InvalidArgument(f"a server is on one side only, and got {sides}.")
        rest = [[member] for member in range(self._count) if member not in named]
        self._sides = [*sides, *rest]
        self._ask("split", self._sides)

    def cut(self, member: int) -> None:
        """Partition a server from all others."""
        self._name(member)
        self.split(*([m for m in side if m != member] for side in self._sides))

    def heal(self) -> None:
        """Heal the network; bytes that were held back arrive now."""
        self._sides = [list(range(self._count))]
        self._ask("split", [])

    def delay(self, member: int, delay_s: float) -> None:
        """Delay all bytes between a server and the others by `delay_s`, each way."""
        if not isinstance(delay_s, int | float) or not 0 <= delay_s < 60:
            raise InvalidArgument(f"delay_s is from 0 to 60 seconds: {delay_s!r}.")
        self._ask("delay", int(self._name(member)), delay_s)

    def log(self, member: int) -> str:
        """Return the last lines that a server has printed, before a restart too."""
        return "\n".join(self._ask("log", self._name(member)))

    def _log_since_start(self, member):
        return "\n".join(self._ask("log", self._name(member), True))

    def _drive(
        self,
        clients: Sequence[Client],
        connect: Callable,
        faults: Iterable[NodeFault],
        meanwhile: Callable[[], object] | None,
    ) -> History:
        """Run clients against the servers; return the history."""
        for number, client in enumerate(clients):
            if not isinstance(client, Client):
                raise InvalidArgument(
                    f"clients are network.Client objects, and number {number} is "
                    f"{client!r}. For example: Client(0, [Call('write', 'x', 1)])"
                )
            self._name(client.node)
        return drive(self, self._began, clients, connect, faults, meanwhile)

    def _name(self, member):
        """Return the supervisor's name for a server.

        Raises: InvalidArgument if there is none of that number.
        """
        if not isinstance(member, int) or not 0 <= member < self._count:
            raise InvalidArgument(
                f"{self.title} has servers 0 to {self._count - 1}, and got {member!r}."
            )
        return str(member)

    def _folder(self, member):
        return os.path.join(self.folder, str(member))

    def _start(self, member):
        self._start_process(self._name(member), *self._commands[member])

    def _start_process(self, name, command, directory):
        self._ask("start", name, command, self._environment(name), directory)

    def _environment(self, name):
        """Return the environment of a server."""
        return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}

    def _until_it_answers(self, member):
        """Wait until a server serves its clients.

        Raises: EngineFailed if it ends before, or does not do so for a minute.
        """
        with Progress(f"waiting for {self.title} {member}"):
            self._until(lambda: self._answers(member), [member], "answer its clients")

    def _answers(self, member):
        raise NotImplementedError

    def _until_ended(self, name):
        """Wait for the end of a preparing program, such as initdb.

        Raises: EngineFailed if it fails.
        """
        deadline = time.monotonic() + patience(_STARTS_S)
        with Progress(f"waiting for {self.title} {name}"):
            while (status := self._ask("states")[name][1]) is None:
                if time.monotonic() > deadline:
                    raise self._late(name, "end")
                time.sleep(0.01)
        if status:
            raise self._failure(name, "failed")

    def _until(self, done, members, what):
        deadline = time.monotonic() + patience(_STARTS_S)
        while not done():
            for member in members:
                if member not in self.alive:
                    raise self._failure(
                        self._name(member), f"ended before it could {what}"
                    )
                if time.monotonic() > deadline:
                    raise self._late(self._name(member), what)
            time.sleep(0.01)

    def _late(self, name, what):
        limit = limit_in_words(_STARTS_S)
        return self._failure(name, f"did not {what} within {limit}. {more_patience()}")

    def _failure(self, name, how):
        _, status = self._ask("states").get(name, (None, None))
        if status is not None:
            left = f"with exit status {status}"
            if status < 0:
                left = f"killed by {signal.Signals(-status).name}"
            how += f": {left}"
        said = [f"    It said: {line}" for line in self._ask("log", name)[-12:]]
        return EngineFailed("\n".join([f"{self.title} {name} {how}.", "", *said]))

    def _ask(self, what, *args):
        """Send the supervisor a request; return its answer.

        Raises: EngineFailed if the supervisor has ended, or cannot do it.
        """
        with self._turn:
            if not self._processes.alive:
                raise EngineFailed(
                    f"{self.title} has been stopped, or its processes are gone. "
                    "Start another one."
                )
            self._requests += 1
            number = self._requests
            request = {"number": number, "what": what, "args": args}
            self._processes.send(0, json.dumps(request).encode())
            return self._answer(number, what)

    def _answer(self, number, what):
        deadline = time.monotonic() + patience(_ANSWERS_S)
        said = ""
        while time.monotonic() < deadline:
            for happened in self._processes.poll(0.5):
                if isinstance(happened, Ended):
                    raise EngineFailed(
                        f"the process that keeps the servers of {self.title} is "
                        f"gone, and they with it.\n{said}"
                    )
                if not isinstance(happened, FrameReceived):
                    said += happened.text
                    continue
                answer = json.loads(happened.payload)
                if answer["number"] != number:
                    continue  # to a request that was interrupted
                if "error" in answer:
                    raise EngineFailed(f"{self.title}: {answer['error']}")
                return answer["answer"]
        raise EngineFailed(
            f"the servers of {self.title} have not answered {what!r} within "
            f"{limit_in_words(_ANSWERS_S)}. {more_patience()}."
        )
