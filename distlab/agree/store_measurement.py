"""Measurement of a store: its consistency, availability and latency.

Three kinds of runs, all of the same store under clients at every node (`workload`):

    quiet    nothing fails            latency of reads and writes
    split    two nodes | one node     availability and latency on each side
    rough    a partition, a crash, dropped, duplicated and late messages, another seed
             each time: the strongest consistency that none of them violates
"""

import itertools
import math
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from distlab.agree.model_hierarchy import ModelHierarchy
from distlab.agree.staleness import staleness
from distlab.calls.progress import Progress
from distlab.errors import InvalidArgument
from distlab.faults import Crash, Split
from distlab.history import History
from distlab.network import Client, Delivery, Node, Outcome, simulate
from distlab.trace import Call

__all__ = [
    "Measured",
    "Observed",
    "final_reads",
    "measure",
    "measured",
    "name_of",
    "workload",
]

_CLIENTS_PER_NODE = 2
_KEYS = 2
_ONE_WAY_S = 0.01
_SPLIT_S = (0.1, 2.5)
_TOLD_S = (0.1, 2.0)  # calls that begin then time out, if they do, before it heals
_ROUGH = Delivery((0.001, 0.1), loss=0.2, duplicate=0.1)
_HURRY_S = 0.005  # between calls: so short that messages are reordered
_ROUGH_KEYS = 4
_FINALLY_S = 12.0  # when all clients are long done, and the replicas should agree


def workload(
    nodes: int,
    clients: int,
    *,
    operations: int = 20,
    keys: int = 2,
    seed: int = 0,
) -> list[Client]:
    """Return clients, spread evenly over the nodes, that read and write a few keys.

    Every call is a read or a write, at random, of one of the keys "x", "y", "z", ...
    No value is written twice, so that a read's result identifies the write that it saw.
    `dataclasses.replace(client, pause_s=0.1)` changes one.
    """
    values = itertools.count(1)
    made = []
    for number in range(clients):
        dice = random.Random(f"client {number} of workload {seed}")
        calls = [_call(dice, _names(keys), values) for _ in range(operations)]
        start_s, pause_s = dice.uniform(0, 0.03), dice.uniform(0.03, 0.05)
        made.append(Client(number % nodes, calls, start_s, pause_s, timeout_s=0.4))
    return made


def final_reads(nodes: int, *, keys: int, start_s: float) -> list[Client]:
    """Return a client for each node that reads every key once, from `start_s` on."""
    calls = [Call("read", key) for key in _names(keys)]
    return [Client(node, calls, start_s) for node in range(nodes)]


def _call(dice, names, values):
    key = dice.choice(names)
    if dice.random() < 0.5:
        return Call("read", key)
    return Call("write", key, next(values))


def _names(keys):
    letters = "xyzuvwabcdefghijklmnopqrst"
    return [*letters[:keys], *(f"x{k}" for k in range(len(letters), keys))]


@dataclass(frozen=True)
class Observed:
    """A history, with the nodes that its clients called.

    node_of: the node that each client called. start_s, end_s: only calls that began
    between them are counted.
    """

    history: History
    node_of: Sequence[int]
    start_s: float = 0.0
    end_s: float = math.inf

    def latencies_s(self, op: str) -> list[float]:
        """Return the seconds that each completed call of this kind took."""
        return [each.end - each.start for each in self._asked(op) if _answered(each)]

    def answered(self, op: str, nodes: Sequence[int]) -> float | None:
        """Return the share of calls of this kind, at these nodes, that completed.

        None if there was no such call.
        Every client has the same weight: one that has to wait for a refusal calls less
        often, so if every call had the same, a store would look the better the longer
        it lets clients wait.
        """
        shares = []
        for client, node in enumerate(self.node_of):
            described = [each for each in self._asked(op) if each.client == client]
            if described and node in nodes:
                shares.append(statistics.fmean(map(_answered, described)))
        return statistics.fmean(shares) if shares else None

    def _asked(self, op):
        between = (e for e in self.history if self.start_s <= e.start < self.end_s)
        return [each for each in between if each.op == op]


def _answered(operation):
    return operation.outcome == "ok"


@dataclass(frozen=True, repr=False)
class Measured:
    """The measurements of one store.

    sides: the nodes on each side of the partition, the majority first.
    quiet, split: the run without a fault, and that with the partition.
    one_way_s: seconds that every message took in those two.
    ladder: the models that the runs have violated.
    stale_s: of every read in the run with the partition the age of its value, in
        seconds (see `staleness`).
    """

    name: str
    sides: tuple[tuple[int, ...], tuple[int, ...]]
    quiet: Observed
    split: Observed
    one_way_s: float
    ladder: ModelHierarchy
    stale_s: list[float]

    @property
    def consistency(self) -> str:
        """The strongest model that was not violated in any run; no proof of it."""
        return self.ladder.strongest

    def delays(self, op: str, *, split: bool = False) -> list[int]:
        """Return the number of messages that each completed call waited for, sorted.

        It is the latency divided by `one_way_s`, rounded down: the overhead of real
        processes, which is less than that, is not counted.
        """
        seconds = (self.split if split else self.quiet).latencies_s(op)
        return sorted(int(each / self.one_way_s + 0.01) for each in seconds)

    def median_s(self, op: str, *, split: bool = False) -> float | None:
        """Return the median latency of completed calls in seconds, None if none."""
        seconds = (self.split if split else self.quiet).latencies_s(op)
        return statistics.median(seconds) if seconds else None

    def availability(self, nodes: Sequence[int] | None = None) -> float:
        """Return the share of calls completed during the partition, at these nodes.

        Reads and writes count the same. Without `nodes`: at all of them.
        """
        return statistics.fmean(self.availability_of(nodes).values())

    def availability_of(self, nodes: Sequence[int] | None = None) -> dict[str, float]:
        """Return the `availability` of reads and of writes: op -> share."""
        nodes = sum(self.sides, ()) if nodes is None else nodes
        shares = {op: self.split.answered(op, nodes) for op in ("read", "write")}
        return {op: share for op, share in shares.items() if share is not None}

    def __repr__(self):
        spent = " and ".join(self._spent(op) for op in ("read", "write"))
        shares = " and ".join(f"{self.availability(side):.0%}" for side in self.sides)
        return (
            f"{self.name}: {self.consistency} in {self.ladder.judged} runs; {spent}; "
            f"in a partition {shares} of calls are answered on the majority's and "
            "on the minority's side"
        )

    def _spent(self, op):
        delays = self.delays(op)
        if not delays:
            return f"no {op} was answered"
        return f"a {op} waits for {statistics.median(delays):g} messages"


def measure(
    make: Callable[[int, Sequence[int]], Node],
    *,
    name: str | None = None,
    nodes: int = 3,
    seeds: int = 12,
    on: Callable[..., Outcome] = simulate,
) -> Measured:
    """Measure the consistency, availability and latency of a store of `nodes` nodes.

    make: a store's class, or a partial of one. seeds: the number of rough runs.
    on: `simulate`, or `network.run` for real processes, which is slower.

    Raises: InvalidArgument, and the errors of `on`.
    """
    with Progress() as progress:
        return measured(make, name or name_of(make), nodes, seeds, on, progress)


def measured(make, name, nodes, seeds, on, progress: Progress) -> Measured:
    """Measure a store as `measure` does, and report the progress."""
    if nodes < 3:
        raise InvalidArgument(
            f"nodes={nodes}: a partition with a majority takes 3 nodes or more."
        )
    majority = nodes // 2 + 1
    sides = tuple(range(majority)), tuple(range(majority, nodes))
    ladder = ModelHierarchy()

    def run(number, clients, faults, delivery):
        described = f"{name}: run {number} of {seeds + 2}"
        progress.show(lambda: described)
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
        Observed(whole, [client.node for client in quiet]),
        Observed(halved, [client.node for client in cut], *_TOLD_S),
        _ONE_WAY_S,
        ladder,
        staleness(halved),
    )


def _clients(nodes, operations, keys, seed):
    clients = _CLIENTS_PER_NODE * nodes
    return workload(nodes, clients, operations=operations, keys=keys, seed=seed)


def _rough(nodes, seed):
    """Return clients, faults and delivery of a run with a partition and a crash."""
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
    """Return a store's name with its options, such as `Quorum(reads=1)`."""
    if not isinstance(make, partial):
        return getattr(make, "__name__", repr(make))
    knobs = ", ".join(f"{knob}={value!r}" for knob, value in make.keywords.items())
    return f"{name_of(make.func)}({knobs})"
