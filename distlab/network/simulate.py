"""`simulate`: nodes and clients on a virtual clock, the same every time."""

from collections.abc import Callable, Iterable

from distlab.errors import NodeFailed
from distlab.faults import NodeFault, check_node_faults
from distlab.network.arguments import (
    check_again,
    check_clients,
    check_delivery,
    check_nodes,
    check_seconds,
)
from distlab.network.client import Client
from distlab.network.compare import compare
from distlab.network.delivery import Delivery
from distlab.network.outcome import Outcome
from distlab.network.virtual import VirtualRun

__all__ = ["simulate"]


def simulate(
    make: Callable,
    nodes: int,
    clients: Client | Iterable[Client] = (),
    *,
    faults: NodeFault | Iterable[NodeFault] = (),
    delivery: Delivery = Delivery(),  # noqa: B008, it cannot change
    seed: int = 0,
    until_s: float = 60.0,
    twice: bool = False,
) -> Outcome:
    """Run `nodes` nodes, each made by make(me, peers), on a virtual clock.

    It ends when the clients have asked all they ask, and no message is under way that
    goes back to one of their calls, or at `until_s`. Timers, and what they send, do not
    keep it going, unless there are no clients. A method of a node takes no time, nor
    does the way between a client and its node. The same arguments give the same
    outcome, event by event.

    A node that crashes loses its memory, its timers, and what is on its way to it. It
    starts again as a new object, from what it had saved.

    twice: whether to run it all a second time, and see whether every node does the same
    again. What it cannot see is chance that one process has only once, such as the
    order of a set of strings.

    Raises: InvalidArgument, NodeFailed, NotDeterministic.
    Cost: about 10 microseconds a message.
    """
    check_nodes(nodes)
    clients = check_clients(clients, nodes)
    faults = check_node_faults(faults, nodes)
    check_delivery(delivery)
    check_seconds("until_s", until_s)
    if twice:
        check_again(clients)
    run = VirtualRun(make, nodes, clients, faults, delivery, seed)
    if twice:
        run.log = []
    run.run(until_s)
    if twice:
        again = VirtualRun(make, nodes, clients, faults, delivery, seed)
        again.log = []
        _compare(run, again, until_s)
    return run.outcome()


def _compare(run, again, until_s):
    """Run it again, and compare what every node did.

    Raises: NotDeterministic naming the first event at which they part.
    """
    failed = None
    try:
        again.run(until_s)
    except NodeFailed as error:
        failed = error
    parted = compare(run.log, again.log, failed, again.hosts)
    if parted:
        raise parted
    assert failed is None
