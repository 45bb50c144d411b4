"""What a store is worth: its consistency, availability and latency, by measurement.

Three kinds of runs, all of the same store under clients at every node:

    quiet    nothing fails            how long does a read take, how long a write?
    split    two nodes | one node     who is still answered, and how fast?
    rough    a split, a crash, lost, doubled and late messages, another seed each time:
             which consistency has none of them violated?
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from distlab.agree.ladder import Ladder
from distlab.agree.measured import Measured, Watched
from distlab.agree.staleness import staleness
from distlab.agree.workload import final_reads, workload
from distlab.calls.progress import Progress
from distlab.errors import InvalidArgument
from distlab.faults import Crash, Split
from distlab.network import Delivery, Node, Outcome, simulate

__all__ = ["measure", "measured", "name_of"]

_CLIENTS_PER_NODE = 2
_KEYS = 2
_ONE_WAY_S = 0.01
_SPLIT_S = (0.1, 2.5)
_TOLD_S = (0.1, 2.0)  # what begins then gives up, if it does, before the split heals
_ROUGH = Delivery((0.001, 0.1), loss=0.2, duplicate=0.1)
_HURRY_S = 0.005  # between calls: so short that messages overtake those before
_ROUGH_KEYS = 4
_FINALLY_S = 12.0  # when all clients are long done, and the replicas should agree


def measure(
    make: Callable[[int, Sequence[int]], Node],
    *,
    name: str | None = None,
    nodes: int = 3,
    seeds: int = 12,
    on: Callable[..., Outcome] = simulate,
) -> Measured:
    """Find out what a store of `nodes` nodes is worth.

    make: a store's class, or a partial of one. seeds: how many rough runs there are.
    on: `simulate`, or `network.run` for real processes, which takes its time.

    Raises: InvalidArgument, and what `on` raises.
    """
    with Progress() as progress:
        return measured(make, name or name_of(make), nodes, seeds, on, progress)


def measured(make, name, nodes, seeds, on, progress: Progress) -> Measured:
    """Do what `measure` does, and say how far it is."""
    if nodes < 3:
        raise InvalidArgument(
            f"nodes={nodes}: a split with a majority on one side takes 3 nodes or more."
        )
    majority = nodes // 2 + 1
    sides = tuple(range(majority)), tuple(range(majority, nodes))
    ladder = Ladder()

    def run(number, clients, faults, delivery):
        told = f"{name}: run {number} of {seeds + 2}"
        progress.show(lambda: told)
        kept = {"faults": faults, "delivery": delivery, "seed": number}
        history = on(make, nodes, clients, **kept).history
        ladder.judge(history)
        return history

    even = Delivery((_ONE_WAY_S, _ONE_WAY_S))
    split = Split(_SPLIT_S[0], *sides, until_s=_SPLIT_S[1])
    quiet = _clients(nodes, 10, _KEYS, seed=0)
    whole = run(1, quiet, [], even)
    cut = _clients(nodes, 40, _KEYS, seed=1)
    halved = run(2, cut, [split], even)
    for seed in range(seeds):
        run(3 + seed, *_rough(nodes, seed))
    return Measured(
        name,
        sides,
        Watched(whole, [client.node for client in quiet]),
        Watched(halved, [client.node for client in cut], *_TOLD_S),
        _ONE_WAY_S,
        ladder,
        staleness(halved),
    )


def _clients(nodes, operations, keys, seed):
    clients = _CLIENTS_PER_NODE * nodes
    return workload(nodes, clients, operations=operations, keys=keys, seed=seed)


def _rough(nodes, seed):
    """Return clients, faults and delivery of a run with a split and a crash."""
    dice = random.Random(f"rough run {seed}")
    alone, dies = dice.randrange(nodes), dice.randrange(nodes)
    at_s, dies_s = dice.uniform(0, 0.3), dice.uniform(0, 0.6)
    together = [node for node in range(nodes) if node != alone]
    faults = [
        Split(at_s, together, [alone], until_s=at_s + 0.3),
        Crash(dies, dies_s, until_s=dies_s + dice.uniform(0.02, 0.2)),
    ]
    clients = [
        replace(client, pause_s=_HURRY_S)
        for client in _clients(nodes, 24, _ROUGH_KEYS, seed)
    ]
    clients += final_reads(nodes, keys=_ROUGH_KEYS, start_s=_FINALLY_S)
    return clients, faults, _ROUGH


def name_of(make: Callable[..., Node]) -> str:
    """Return how a store is written, such as `Quorum(reads=1)`."""
    if not isinstance(make, partial):
        return getattr(make, "__name__", repr(make))
    knobs = ", ".join(f"{knob}={value!r}" for knob, value in make.keywords.items())
    return f"{name_of(make.func)}({knobs})"
