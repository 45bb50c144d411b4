"""Lineage of a data set: its graph of dependencies, cut into stages, and what ran.

    textFile ──narrow──▶ flatMap ──narrow──▶ map ══wide══▶ reduceByKey ──▶ ...
    └────────────────── stage 0 ──────────────┘   └────── stage 1 ──────

"narrow" and "wide" are those of Spark's code: the one needs whole partitions of its
parent, the other a part of every one, which is a shuffle and the border between two
stages. Pictures need nothing but this.

Source: Zaharia et al., "Resilient Distributed Datasets" (2012), section 4.
"""

from typing import NamedTuple

__all__ = ["Lineage", "LineageNode", "Parent", "StageRun"]


class Parent(NamedTuple):
    """One dependency of a node.

    id: of the node it depends on. kind: "narrow" or "wide".
    needs: for each partition of the node the parent's partitions that it needs; empty
        if wide, where it needs them all.
    shuffle: the number of a wide dependency's shuffle, else None.
    """

    id: int
    kind: str
    needs: tuple[tuple[int, ...], ...] = ()
    shuffle: int | None = None


class LineageNode(NamedTuple):
    """One data set of the graph.

    name: the operation that made it, such as "reduceByKey". label: the learner's name
    for it, else "".
    stages: the numbers of the stages that it is part of; usually one.
    cached: its storage level in words, such as "memory"; "" if it is not kept.
    computed: the partitions that were computed, in order of completion; one that was
        computed twice is in it twice.
    reused: the partitions that were read from the cache instead, in the same way.
    held: (partition, worker) for each partition that is in a worker's cache.
    """

    id: int
    name: str
    label: str
    partitions: int
    stages: tuple[int, ...]
    cached: str
    parents: tuple[Parent, ...]
    computed: tuple[int, ...] = ()
    reused: tuple[int, ...] = ()
    held: tuple[tuple[int, int], ...] = ()


class StageRun(NamedTuple):
    """One stage: a chain of narrow dependencies, up to a shuffle or the result.

    node: the id of the last data set in it. shuffle: the number of the shuffle that it
    writes, None for the stage of the result. parents: stages whose shuffles it reads.
    tasks: the number of its tasks. attempts: the number of attempts started.
    ran: the partitions whose task completed in this action, in order of completion.
    skipped: True if nothing had to run, as its shuffle files, or data sets made from
        them, were there.
    seconds: from its first task's start to its last task's end.
    """

    id: int
    node: int
    shuffle: int | None
    parents: tuple[int, ...]
    tasks: int
    attempts: int = 0
    ran: tuple[int, ...] = ()
    skipped: bool = False
    seconds: float = 0.0


class Lineage(NamedTuple):
    """A graph: parents come before their children. The last node is the data set
    whose lineage it is.
    """

    nodes: tuple[LineageNode, ...]
    stages: tuple[StageRun, ...]
