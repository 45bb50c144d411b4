"""`run` and `Cluster`: nodes as real processes, behind a switch that can be broken.

    kernel ──▶ node 0 ──▶ ┌────────┐ ──▶ node 1
      clients, buttons    │ switch │        delayed, dropped, duplicated, reordered
                          └────────┘ ──▶ node 2

The result is an `Outcome`, as of `simulate`. The processes are real, so the order of
events is not the same each time: the delays and drops of each link are drawn from the
seed, but the speed of the processes varies.
"""

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from distlab.calls.progress import Progress
from distlab.calls.serialize import pack_functions
from distlab.errors import InvalidArgument
from distlab.faults import (
    ClockJump,
    Crash,
    Cut,
    NodeFault,
    Split,
    check_node_faults,
)
from distlab.history import History
from distlab.network.client import CallSequence, Client, check_clients, check_seconds
from distlab.network.cluster.event_log import merge_logs
from distlab.network.cluster.panel import Panel
from distlab.network.cluster.partitions import Partitions
from distlab.network.cluster.supervisor import Supervisor
from distlab.network.copies import NotPlain, plain_copy
from distlab.network.delivery import Delivery, check_delivery
from distlab.network.node_host import check_nodes, make_node
from distlab.network.outcome import Outcome
from distlab.patience import patience
from distlab.processes import Interrupts
from distlab.trace import Call, Operation

__all__ = ["Cluster", "run"]

_MOST_NODES = 64


def run(
    make: Callable,
    nodes: int,
    clients: Client | Iterable[Client],
    *,
    faults: NodeFault | Iterable[NodeFault] = (),
    delivery: Delivery = Delivery(),  # noqa: B008, it cannot change
    seed: Any = 0,
    timeout_s: float = 60,
) -> Outcome:
    """Run nodes as processes until every client is done; return the outcome.

    make: called as make(me, peers), returns a `Node`; a class of nodes, or a function.
    faults: of any kind for nodes; their times, and the clients' start_s, count from the
    time when all nodes are up. timeout_s: the time limit for the clients; operations
    without a response by then are unknown.

    When the clients are done, the nodes get up to a second more, until no message is
    under way. A client whose node dies gets no error, as the node could be slow as
    well: its call is unknown when its time-out is over.

    Raises: NodeFailed if a node raised, returned nonsense or did not return;
    InvalidArgument, NotSerializable, before anything starts; SwitchFailed.
    """
    check_nodes(nodes, _MOST_NODES)
    clients = check_clients(clients, nodes)
    check_seconds("timeout_s", timeout_s)
    with Cluster(make, nodes, faults=faults, delivery=delivery, seed=seed) as cluster:
        cluster._ask(Supervisor.start_clients, clients, 0.0)
        with Progress(f"{nodes} nodes and their clients at work"):
            cluster._ask(Supervisor.finish, patience(timeout_s))
    return cluster.outcome()


class Cluster:
    """Nodes as processes, with faults injected by hand while clients call them.

    make, nodes, faults, delivery, seed: as in `run`.

    Called by a notebook, mostly `with network.Cluster(...) as cluster:`; without that,
    `close` ends it, or the end of the notebook's kernel.

    Raises: from every method, NodeFailed or SwitchFailed once one of its processes has
    failed, which ends them all; ClusterClosed after its end.
    """

    def __init__(
        self,
        make: Callable,
        nodes: int,
        *,
        faults: NodeFault | Iterable[NodeFault] = (),
        delivery: Delivery = Delivery(),  # noqa: B008, it cannot change
        seed: Any = 0,
    ):
        check_nodes(nodes, _MOST_NODES)
        faults = check_node_faults(faults, nodes)
        check_delivery(delivery)
        make_node(make, 0, nodes)  # most mistakes are found before a process starts
        self._closed = False
        self.nodes = nodes
        packed = pack_functions((make,), "a node")
        self._supervisor = None
        try:
            with Interrupts():
                self._supervisor = Supervisor(packed, nodes, delivery, seed, faults)
                weakref.finalize(self, self._supervisor.leave, wait=False)
            with Progress(f"starting {nodes} nodes"):
                self._supervisor.opened()
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, kind, error, _):
        self._close(copying=kind is None)
        if kind is None and self._supervisor.failure is not None:
            raise self._supervisor.failure

    def __repr__(self):
        states = [f"node {n} {state}" for n, state in enumerate(self.states)]
        return f"Cluster: {'ended' if self._supervisor.over else ', '.join(states)}"

    # operations and faults

    def call(
        self, node: int, op: str, key: Any = None, value: Any = None, *, timeout_s=1.0
    ) -> Operation:
        """Call a node; return the operation: `cluster.call(0, "write", "x", 1)`.

        The operation is "unknown" after `timeout_s`. It is in the history, by client
        "you".
        """
        check_seconds("timeout_s", timeout_s)
        try:
            call = plain_copy(Call(op, key, value))
        except NotPlain as error:
            raise InvalidArgument(
                f"a call is made of plain data, and this one holds {error}."
            ) from None
        return self._ask(Supervisor.call, self._node(node), call, timeout_s)

    def start(self, clients: Client | Iterable[Client]) -> None:
        """Run clients in the background, until they are done or are stopped."""
        clients = check_clients(clients, self.nodes)
        for number, client in enumerate(clients):
            if isinstance(client.calls, Sequence):  # else each as it comes
                asking = CallSequence(number, client.calls)
                while asking.next() is not None:
                    pass
        self._ask(Supervisor.start_clients, clients, None)

    def stop_clients(self) -> None:
        """Stop all clients from making further calls."""
        self._supervisor.ask(self._supervisor.clients.stop)

    def split(self, *sides: Iterable[int]) -> None:
        """Partition the network into sides: `cluster.split([0], [1, 2])`.

        A node on no side is alone. Messages under way between two sides are dropped. An
        earlier partition by hand is replaced.
        """
        self._ask(Supervisor.change_links, Partitions.split, self._sides(sides))

    def cut(self, src: int, dst: int) -> None:
        """Cut the link from node `src` to `dst`, and not the one back, until `heal`."""
        cut = check_node_faults(Cut(0, src, dst), self.nodes)[0]
        self._ask(Supervisor.change_links, Partitions.cut, cut.src, cut.dst)

    def heal(self) -> None:
        """End every network partition, and every cut."""
        self._ask(Supervisor.change_links, Partitions.heal)

    def kill(self, node: int, *, loses: str = "") -> None:
        """Kill a node's process with SIGKILL; its saved values remain.

        loses: what they lose, as in a `Crash`: "unsynced", "last write" or "disk".
        """
        check_node_faults(Crash(self._node(node), 0, loses=loses), self.nodes)
        self._ask(Supervisor.kill, node, loses)

    def move_clock(self, node: int, by_s: float) -> None:
        """Let a node's clock jump by so many seconds; its timers do not."""
        check_node_faults(ClockJump(self._node(node), 0, by_s), self.nodes)
        self._ask(Supervisor.move_clock, node, by_s)

    def restart(self, node: int) -> None:
        """Start a new process for a dead node, with its saved values."""
        self._ask(Supervisor.restart, self._node(node))

    def pause(self, node: int) -> None:
        """Stop a node's process with SIGSTOP: to the others it looks dead."""
        self._ask(Supervisor.pause, self._node(node))

    def resume(self, node: int) -> None:
        """Continue a paused node."""
        self._ask(Supervisor.resume, self._node(node))

    @property
    def delivery(self) -> Delivery:
        """The delivery of messages; a new one holds for messages sent from then on."""
        return self._supervisor.delivery

    @delivery.setter
    def delivery(self, delivery: Delivery) -> None:
        """Change the delivery of messages from now on."""
        check_delivery(delivery)
        self._ask(Supervisor.deliver, delivery)

    def close(self) -> None:
        """End the cluster's processes; its history and outcome stay."""
        self._close(copying=False)

    # state and results

    @property
    def states(self) -> list[str]:
        """The state of each node: "running", "paused", "killed" or "starting"."""
        return list(self._supervisor.states)

    @property
    def pids(self) -> list[int | None]:
        """The process id of each node, to kill it by other means."""
        return self._ask(Supervisor.pids)

    @property
    def history(self) -> History:
        """The operations of all clients, up to now."""
        if self._closed or self._supervisor.failure is not None:
            return History(self._supervisor.clients.operations())
        return History(self._supervisor.ask(self._supervisor.clients.operations))

    def outcome(self) -> Outcome:
        """Return the outcome up to now, or up to the end.

        It has no copy of a node that is dead or paused, or that cannot be pickled.
        """
        if not self._closed and self._supervisor.failure is None:
            copies = self._ask(Supervisor.copy_nodes)
        else:
            copies = self._supervisor.copies
        record, saved = self._supervisor.record()
        copies = copies or [None] * self.nodes
        elapsed_s = self._supervisor.now()
        return Outcome(self.history, merge_logs(record), copies, saved, elapsed_s)

    def panel(self) -> Panel:
        """Return a panel of buttons for these methods, to display in a notebook."""
        return Panel(self, self._supervisor)

    def _ask(self, method, *args):
        """Call a method in the supervisor's thread; return its result."""
        return self._supervisor.ask(method, self._supervisor, *args)

    def _close(self, copying):
        if not self._closed and self._supervisor is not None:
            self._closed = True
            self._supervisor.leave(copying)

    def _sides(self, sides):
        """Return the sides of a partition, each a tuple."""
        if not sides:
            raise InvalidArgument("who is on which side? split([0], [1, 2])")
        for side in sides:
            if isinstance(side, str) or not isinstance(side, Iterable):
                raise InvalidArgument(
                    f"a side is a list of nodes, and got {side!r}: split([0], [1, 2])"
                )
        return check_node_faults(Split(0, *sides), self.nodes)[0].sides

    def _node(self, node):
        whole = isinstance(node, int) and not isinstance(node, bool)
        if not whole or not 0 <= node < self.nodes:
            raise InvalidArgument(
                f"there is no node {node!r}; of {self.nodes} the last is "
                f"{self.nodes - 1}."
            )
        return node
