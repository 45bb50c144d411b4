"""The pictures of README.md, from runs on this machine: python docs/pictures.py."""

from pathlib import Path

import torch

from distlab import Call, Crash, Split, network, show
from distlab.agree import Register, check_linearizable
from distlab.collectives.chunks import split
from distlab.engines import etcd
from distlab.network import Client, Delivery, Node, Reply, Send

FOLDER = Path(__file__).parent


class Copies(Node):
    """A store that answers at once and tells the other replicas later (lesson 02)."""

    def __init__(self, me, peers):
        super().__init__(me, peers)
        self.stock = None

    def on_client(self, request, call):
        if call.op == "write":
            self.stock = call.value
            for peer in self.peers:
                yield Send(peer, f"stock is {call.value}")
        yield Reply(request, self.stock)

    def on_message(self, sender, message):
        self.stock = int(message.split()[-1])


def stale_read():
    """Return a player: a partition, and a read on its smaller side."""
    shop = Client(0, [Call("write", "stock", n) for n in (5, 4)], pause_s=0.03)
    customer = Client(2, [Call("read", "stock")], start_s=0.05)
    run = network.simulate(
        Copies,
        3,
        [shop, customer],
        faults=Split(0.02, [0, 1], [2]),
        delivery=Delivery(delay_s=(0.005, 0.005)),
    )
    return show.player(run, "A network partition, and a stale read")


def lost_leader():
    """Return the history of three clients of etcd, whose leader is killed."""
    with etcd.cluster(3) as store:
        leader = store.leader()
        writes = [Call("write", "x", n) for n in range(1, 6)]
        asked = [[Call("read", "x")] * 5, writes, [Call("read", "x")] * 5]
        clients = [
            Client((leader + n) % 3, calls, start_s=0.1 * n, pause_s=0.3, timeout_s=4)
            for n, calls in enumerate(asked)
        ]
        history = store.drive(clients, faults=[Crash(leader, 0.5)])
    return show.history(
        check_linearizable(history, Register()), "etcd loses its leader"
    )


def adds_twice(comm, tensor):
    """A ring all-reduce that goes on adding in its second phase (lesson 10)."""
    n, rank = comm.world_size, comm.rank
    chunks = split(tensor, n)
    for step in range(2 * (n - 1)):
        comm.mark(f"step {step + 1} of {2 * (n - 1)}")
        outgoing, target = chunks[(rank - step) % n], chunks[(rank - step - 1) % n]
        arrived = torch.empty_like(target)
        comm.sendrecv(outgoing, arrived, dst=(rank + 1) % n, src=(rank - 1) % n)
        target += arrived


if __name__ == "__main__":
    stale_read().save(FOLDER / "partition.png")
    lost_leader().save(FOLDER / "etcd.png")
