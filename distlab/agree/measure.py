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
from distlab.errors import InvalidArgument
from distlab.faults import Crash, Split
from distlab.network import Delivery, Node, Outcome, simulate

__all__ = ["measure", "name_of"]

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
    if nodes < 3:
        raise InvalidArgument(
            f"nodes={nodes}: a split with a majority on one side takes 3 nodes or more."
        )
    majority = nodes // 2 + 1
    sides = tuple(range(majority)), tuple(range(majority, nodes))
    even = Delivery((_ONE_WAY_S, _ONE_WAY_S))
    quiet = _clients(nodes, 10, _KEYS, seed=0)
    whole = on(make, nodes, quiet, delivery=even)
    cut = _clients(nodes, 40, _KEYS, seed=1)
    split = Split(_SPLIT_S[0], *sides, until_s=_SPLIT_S[1])
    halved = on(make, nodes, cut, faults=[split], delivery=even)
    ladder = Ladder()
    histories = [whole.history, halved.history]
    for seed in range(seeds):
        histories.append(_rough(on, make, nodes, seed))
    for history in histories:
        ladder.judge(history)
    return Measured(
        name or name_of(make),
        sides,
        Watched(whole.history, [client.node for client in quiet]),
        Watched(halved.history, [client.node for client in cut], *_TOLD_S),
        _ONE_WAY_S,
        ladder,
        staleness(halved.history),
    )


def _clients(nodes, operations, keys, seed):
    clients = _CLIENTS_PER_NODE * nodes
    return workload(nodes, clients, operations=operations, keys=keys, seed=seed)


def _rough(on, make, nodes, seed):
    """Return the history of a run in which a node is cut off, and one crashes."""
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
    outcome = on(make, nodes, clients, faults=faults, delivery=_ROUGH, seed=seed)
    return outcome.history


def name_of(make: Callable[..., Node]) -> str:
    """Return how a store is written, such as `Quorum(reads=1)`."""
    if not isinstance(make, partial):
        return getattr(make, "__name__", repr(make))
    knobs = ", ".join(f"{knob}={value!r}" for knob, value in make.keywords.items())
    return f"{name_of(make.func)}({knobs})"
