"""The lineage: data sets, their dependencies, and their serialization for workers.

    Narrow   a partition needs whole partitions of its parent: one task, no shuffle
    Wide     it needs a piece of every one: a shuffle, and a new stage

As in Spark's code. The paper calls a dependency narrow if each partition of the parent
is used by at most one of the child, which leaves out `cartesian`.

    textFile ─▶ flatMap ─▶ map ══▶ reduceByKey      ─▶ narrow   ══▶ wide
    └────── one chain ───────┘

A data set is immutable, and holds the function that computes each of its partitions. So
a lost partition can be recomputed from its parents, and nothing else has to be kept.

Source: Zaharia et al., "Resilient Distributed Datasets" (2012), sections 2 and 4.
"""

import io
import pickle
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from distlab.calls.serialize import Pickler, pack_functions
from distlab.dataflow.rdd.cache import StorageLevel
from distlab.errors import DistlabError, NestedRDD, NotSerializable

__all__ = [
    "Aggregator",
    "DatasetNode",
    "Narrow",
    "Wide",
    "WorkerDataset",
    "chain_of",
    "same",
    "serialize",
    "within",
]


class WorkerDataset(NamedTuple):
    """A data set as a worker sees it: enough to compute any of its partitions.

    kind: "source", called as compute(partition); "piped", compute(partition, iterator);
    "joined", compute(partition, inputs) with for each parent a list of functions that
    return an iterator; "shuffled", compute(partition, chunks).
    inputs: for each parent its id and which of its partitions a partition needs;
    of a shuffled one the number of the shuffle.
    """

    id: int
    name: str
    kind: str
    compute: Callable
    inputs: tuple


class Aggregator(NamedTuple):
    """The functions that combine the values of one key.

    create: makes a combiner of the first value, None if it is the value itself. merge:
    adds a value to a combiner. combine: merges two combiners.
    early: whether the map side combines too, before anything is sent.
    """

    create: Callable | None
    merge: Callable
    combine: Callable
    early: bool = True


class Narrow(NamedTuple):
    """A dependency on the partitions needs(partition) of a parent."""

    parent: "DatasetNode"
    needs: Callable[[int], Sequence[int]]


class Wide:
    """A dependency on a piece of every partition of a parent: one shuffle.

    number: of the shuffle. partitions: the number of pieces that each map task writes.
    payload: (partitions, choose, aggregator) serialized, as they were when it was made.
    """

    def __init__(
        self,
        parent: "DatasetNode",
        partitions: int,
        choose: Callable,
        aggregator: Aggregator | None = None,
    ):
        self.parent = parent
        self.partitions = partitions
        cluster = parent.ctx.cluster
        self.number = cluster.next_shuffle()
        cluster.when_gone(self, cluster.remove_shuffle, self.number)
        how = partitions, choose, aggregator
        self.payload = serialize(how, how)
        parent.serialized()


class DatasetNode:
    """A data set in the graph: its number, its partitions, its dependencies.

    ctx: its Context. label: the name that the learner gave it, if any.
    kind, compute: as in `WorkerDataset`. operation: the method that made it.
    partitioner: the map from keys to partitions, if that is known.
    level: where its partitions are to be kept. If they are, its function was serialized
    when `persist` was called, and chains made from it end at it.
    checkpointing: whether the next action is to write it to the checkpoint folder.
    cut_off: whether it is read from a checkpoint instead of being computed.
    """

    def __init__(
        self,
        ctx: object,
        operation: str,
        partitions: int,
        kind: str,
        compute: Callable,
        dependencies: Iterable[Narrow | Wide] = (),
    ):
        self.ctx = ctx
        self.operation = operation
        self.partitions = partitions
        self.kind = kind
        self.compute = compute
        self.dependencies = tuple(dependencies)
        self.label = None
        self.partitioner = None
        self.level = StorageLevel.NONE
        self.checkpointing = self.cut_off = False
        self.number = ctx.cluster.next_node()
        self._serialized = None  # (bytes, nodes beyond), from the first time on
        if kind == "joined":
            for each in self.dependencies:
                each.parent.serialized()

    @property
    def kept(self) -> bool:
        """True if its partitions are to be kept."""
        return self.level is not StorageLevel.NONE

    def step(self) -> WorkerDataset:
        """Return the `WorkerDataset` that is sent to workers."""
        inputs = tuple(
            each.number if isinstance(each, Wide) else (each.parent.number, each.needs)
            for each in self.dependencies
        )
        return WorkerDataset(
            self.number, self.operation, self.kind, self.compute, inputs
        )

    def serialized(self) -> tuple[bytes, list["DatasetNode"]]:
        """Return (its chain as bytes, the parents of the chain); the first call's
        result is kept.

        The objects that the learner's functions refer to are serialized as they are,
        whatever changes until a lost partition is recomputed.
        """
        if self._serialized is None:
            self._serialized = self._serialize()
        return self._serialized

    def _serialize(self):
        chain, beyond = chain_of(self)
        functions = [node.compute for node in chain]
        return serialize([node.step() for node in chain], functions), beyond

    def program(self, last: bytes) -> bytes:
        """Return all chains of its stage, and then `last`, as bytes.

        Its own functions are serialized with the objects they refer to now, unless they
        had to be serialized before.
        """
        data, waiting = self._serialized or self._serialize()
        chains, seen, waiting = [data], set(), list(waiting)
        while waiting:
            node = waiting.pop()
            if node.number not in seen:
                seen.add(node.number)
                data, beyond = node.serialized()
                chains.append(data)
                waiting += beyond
        # Chains serialized before a checkpoint lack it: those here replace their steps.
        chains[:0] = [each.serialized()[0] for each in within(self) if each.cut_off]
        return pickle.dumps([*chains, last])

    def cut_lineage(self, compute: Callable) -> None:
        """Drop its dependencies; from now on compute(partition) reads it."""
        self.kind, self.compute, self.dependencies = "source", compute, ()
        self.cut_off, self._serialized = True, None

    def __reduce__(self):
        raise NestedRDD(
            f"RDD {self.number} ({self.operation}) is used inside a function that "
            "runs on workers, which have no Context and cannot start a job. Use join "
            "to bring two RDDs together, or collect() one and use the result, or a "
            "broadcast of it."
        )


def chain_of(node: DatasetNode) -> tuple[list[DatasetNode], list[DatasetNode]]:
    """Return the chain of `node`, itself first, and the parents that the chain reads.

    A chain ends at a source, a shuffle, or a node with several parents, and before a
    parent that is kept.
    """
    chain = [node]
    while node.kind == "piped":
        node = node.dependencies[0].parent
        if node.kept:
            return chain, [node]
        chain.append(node)
    return chain, [
        each.parent for each in node.dependencies if isinstance(each, Narrow)
    ]


def within(node: DatasetNode) -> list[DatasetNode]:
    """Return the data sets of the stage that ends with `node`, which is the first."""
    seen, waiting = {}, [node]
    while waiting:
        node = waiting.pop()
        if node.number not in seen:
            seen[node.number] = node
            waiting += [d.parent for d in node.dependencies if isinstance(d, Narrow)]
    return list(seen.values())


def same(partition: int) -> tuple[int]:
    """Return the one partition that a chain's next data set needs: its own number."""
    return (partition,)


def functions_in(compute: object) -> list[Callable]:
    """Return the functions inside a partial or tuple, or the function itself."""
    if isinstance(compute, partial):
        parts = (*compute.args, *compute.keywords.values(), compute.func)
    elif isinstance(compute, tuple):
        parts = compute
    else:
        return [compute] if callable(compute) else []
    return [fn for part in parts for fn in functions_in(part)]


def serialize(thing: object, functions: Iterable = (), what: str = "this") -> bytes:
    """Return `thing` serialized for workers, as bytes.

    Raises: NotSerializable naming the one of `functions` that cannot be serialized, and
    why, or `what`; NestedRDD.
    """
    file = io.BytesIO()
    try:
        Pickler(file).dump(thing)
    except DistlabError:
        raise
    except Exception as error:
        each = [fn for given in functions for fn in functions_in(given)]
        pack_functions(each, "a worker")
        raise NotSerializable(
            f"{what} cannot be serialized for a worker: {error}"
        ) from None
    return file.getvalue()
