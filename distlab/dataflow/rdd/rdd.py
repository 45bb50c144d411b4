"""`RDD`: a data set in partitions, known by how it is made.

What it can do is in the classes that it is put together from, each a file: what makes
another RDD of it, with keys or without, and the actions, which run. Names, arguments
and results are those of the core of PySpark's RDD.
"""

from collections.abc import Callable
from itertools import count

from distlab.dataflow.rdd.actions import Actions
from distlab.dataflow.rdd.cache import StorageLevel
from distlab.dataflow.rdd.files import Files
from distlab.dataflow.rdd.graph import Aggregator, Narrow, Node, Wide, same
from distlab.dataflow.rdd.joins import Joins
from distlab.dataflow.rdd.pairs import Pairs
from distlab.dataflow.rdd.partitioning import Partitioner
from distlab.dataflow.rdd.report import debug_string, lineage_of
from distlab.dataflow.rdd.stages import cut
from distlab.dataflow.rdd.transform import Transformations
from distlab.errors import InvalidArgument
from distlab.trace import Lineage

__all__ = ["RDD"]


class RDD(Transformations, Pairs, Joins, Actions, Files, Node):
    """A data set whose partitions are computed when an action needs them.

    What it is made from, and how, is in `Node`.
    """

    def __repr__(self):
        label = f"{self.label} " if self.label else ""
        return f"{label}{self.operation}[{self.number}] in {self.partitions} partitions"

    def _piped(
        self, operation: str, compute: Callable, preserves: bool = False
    ) -> "RDD":
        """Return what compute(partition, iterator) makes of each partition."""
        parents = [Narrow(self, same)]
        made = RDD(self.ctx, operation, self.partitions, "piped", compute, parents)
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
                f"{self!r} is kept in {self.level.value} already: unpersist() it first."
            )
        self.serialized()
        self.level = storageLevel
        self.ctx.cluster.when_gone(self, self.ctx.cluster.drop, self.number)
        return self

    def unpersist(self, blocking: bool = False) -> "RDD":
        """Forget what is kept of it."""
        if self.kept:
            self.ctx.cluster.drop(self.number)
        self.level = StorageLevel.NONE
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
        stages = cut(self, list(range(self.partitions)), count().__next__)
        return lineage_of(self, stages, self.ctx.cluster.locations)
