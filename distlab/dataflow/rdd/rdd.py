"""`RDD`: a data set in partitions, known by how it is made.

What it can do is in the classes that it is put together from, each a file: what makes
another RDD of it, with keys or without, and the actions, which run. Names, arguments,
results and their order are those of PySpark's RDD.
"""

import weakref
from collections.abc import Callable, Iterable

from distlab.dataflow.rdd import absent
from distlab.dataflow.rdd.actions import Actions
from distlab.dataflow.rdd.arrange import Arrangements
from distlab.dataflow.rdd.checkpoints import Checkpoints
from distlab.dataflow.rdd.debug import debug_string
from distlab.dataflow.rdd.files import Files
from distlab.dataflow.rdd.graph import Aggregator, Narrow, Node, Wide
from distlab.dataflow.rdd.joins import Joins
from distlab.dataflow.rdd.levels import StorageLevel
from distlab.dataflow.rdd.measures import Measures
from distlab.dataflow.rdd.pairs import Pairs
from distlab.dataflow.rdd.partitioning import Partitioner
from distlab.dataflow.rdd.report import lineage_of
from distlab.dataflow.rdd.stages import cut
from distlab.dataflow.rdd.transform import Transformations
from distlab.errors import InvalidArgument
from distlab.trace import Lineage

__all__ = ["RDD"]


class RDD(
    Transformations,
    Arrangements,
    Pairs,
    Joins,
    Actions,
    Measures,
    Files,
    Checkpoints,
    Node,
):
    """A data set whose partitions are computed when an action needs them.

    ctx: its Context. partitioner: which keys are in which partition, if that is known.
    batch: how many records PySpark would move at a time, None if by their size; the
    order of a cartesian product follows from it.
    """

    def __init__(
        self,
        ctx,
        operation: str,
        partitions: int,
        kind: str,
        compute: Callable,
        dependencies: Iterable[Narrow | Wide] = (),
        elementwise: bool = False,
    ):
        self.partitioner = None
        self.label = None
        self.batch = None
        self.level = StorageLevel.NONE
        self.checkpointing = None  # "asked", "local", or the folder it is in
        super().__init__(
            ctx, operation, partitions, kind, compute, dependencies, elementwise
        )

    def __getattr__(self, name):
        raise absent.of("RDD", name, type(self).__name__)

    def __repr__(self):
        label = f"{self.label} " if self.label else ""
        return f"{label}{self.operation}[{self.number}] in {self.partitions} partitions"

    def _piped(
        self,
        operation: str,
        compute: Callable,
        preserves: bool = False,
        elementwise: bool = False,
    ) -> "RDD":
        """Return what compute(partition, iterator) makes of each partition."""
        made = RDD(
            self.ctx,
            operation,
            self.partitions,
            "piped",
            compute,
            [Narrow(self, same)],
            elementwise,
        )
        made.partitioner = self.partitioner if preserves else None
        return made

    def _shuffled(
        self,
        operation: str,
        partitioner: Partitioner,
        compute: Callable,
        aggregator: Aggregator | None = None,
    ) -> "RDD":
        """Return what compute(partition, chunks) makes of each partition's pieces."""
        count, choose = partitioner.numPartitions, partitioner.partitionFunc
        wide = Wide(self, count, choose, aggregator)
        made = RDD(self.ctx, operation, count, "shuffled", compute, [wide])
        made.partitioner = partitioner
        return made

    def _joined(
        self, operation: str, partitions: int, compute: Callable, parents: list[Narrow]
    ) -> "RDD":
        """Return what compute(partition, inputs) makes of partitions of parents."""
        for each in parents:
            self._check_same_context(each.parent)
        return RDD(self.ctx, operation, partitions, "joined", compute, parents)

    def _check_same_context(self, other):
        if not isinstance(other, RDD):
            raise InvalidArgument(f"this takes another RDD, and got {other!r}.")
        if other.ctx is not self.ctx:
            raise InvalidArgument(
                "the two RDDs belong to different Contexts, whose workers do not know "
                "each other. Make both with the same one."
            )

    def id(self) -> int:
        """Return its number in this Context."""
        return self.number

    def name(self) -> str | None:
        """Return the name that it was given, if any."""
        return self.label

    def setName(self, name: str) -> "RDD":
        """Give it a name, which pictures and reports show."""
        self.label = name
        return self

    @property
    def context(self):
        """Its Context."""
        return self.ctx

    def getNumPartitions(self) -> int:
        """Return how many partitions it has."""
        return self.partitions

    def cache(self) -> "RDD":
        """Keep its partitions in memory, once they have been computed."""
        return self.persist()

    def persist(self, storageLevel: StorageLevel = StorageLevel.MEMORY_ONLY) -> "RDD":
        """Keep its partitions, once they have been computed, at a level."""
        if not isinstance(storageLevel, StorageLevel):
            raise TypeError(
                "storageLevel is one such as StorageLevel.DISK_ONLY, and got "
                f"{storageLevel!r}."
            )
        if self.kept and storageLevel != self.level:
            raise InvalidArgument(
                f"{self!r} is kept as {self.level} already: unpersist() it first."
            )
        self.seal()
        self.level = storageLevel
        self.kept = bool(storageLevel.words)
        forget = self.ctx.cluster.garbage.append
        weakref.finalize(self, forget, (self.number,)).atexit = False
        return self

    def unpersist(self, blocking: bool = False) -> "RDD":
        """Forget what is kept of it."""
        if self.kept:
            self.ctx.cluster.drop(self.number)
        self.kept, self.level = False, StorageLevel.NONE
        return self

    @property
    def is_cached(self) -> bool:
        """Whether it is to be kept."""
        return self.kept

    def getStorageLevel(self) -> StorageLevel:
        """Return where its partitions are kept."""
        return self.level

    def toDebugString(self) -> bytes:
        """Return its lineage as text; a + is where a shuffle is."""
        return debug_string(self).encode()

    def lineage(self) -> Lineage:
        """Return its lineage as data: what it is made from, cut into stages."""
        numbers = iter(range(10**9)).__next__
        stages = cut(self, list(range(self.partitions)), numbers)
        return lineage_of(self, stages, self.ctx.cluster.have)


def same(partition: int) -> tuple[int]:
    """Return the one partition that a chain's next data set needs: its own number."""
    return (partition,)
