"""`RDD`: a data set in partitions, defined by its lineage.

Its operations are in its base classes, one file each: transformations, with keys or
without, and actions, which run a job. Names, arguments and results are those of the
core of PySpark's RDD.
"""

from collections.abc import Callable
from itertools import count

from distlab.dataflow.rdd.actions import Actions
from distlab.dataflow.rdd.cache import StorageLevel
from distlab.dataflow.rdd.dependencies import (
    Aggregator,
    DatasetNode,
    Narrow,
    Wide,
    same,
)
from distlab.dataflow.rdd.files import Files
from distlab.dataflow.rdd.joins import Joins
from distlab.dataflow.rdd.pairs import Pairs
from distlab.dataflow.rdd.partitioning import Partitioner
from distlab.dataflow.rdd.report import debug_string, lineage_of
from distlab.dataflow.rdd.stages import cut
from distlab.dataflow.rdd.transform import Transformations
from distlab.errors import InvalidArgument
from distlab.trace import Lineage

__all__ = ["RDD"]


class RDD(Transformations, Pairs, Joins, Actions, Files, DatasetNode):
    """A data set whose partitions are computed when an action needs them.

    Its dependencies and its compute function are in `DatasetNode`.
    """

    def __repr__(self):
        label = f"{self.label} " if self.label else ""
        return f"{label}{self.operation}[{self.number}] in {self.partitions} partitions"

    def _piped(
        self, operation: str, compute: Callable, preserves: bool = False
    ) -> "RDD":
        """Return the RDD of compute(partition, iterator) of each partition."""
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
        """Return the RDD of compute(partition, chunks) after a shuffle."""
        count, choose = partitioner.numPartitions, partitioner.partitionFunc
        wide = Wide(self, count, choose, aggregator)
        made = RDD(self.ctx, operation, count, "shuffled", compute, [wide])
        made.partitioner = partitioner
        return made

    def _joined(
        self, operation: str, partitions: int, compute: Callable, parents: list[Narrow]
    ) -> "RDD":
        """Return the RDD of compute(partition, inputs) of partitions of `parents`."""
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
        """Set its name, which pictures and reports show; return the RDD."""
        self.label = name
        return self

    @property
    def context(self):
        """Its Context."""
        return self.ctx

    def getNumPartitions(self) -> int:
        """Return the number of its partitions."""
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
        """Drop its kept partitions from memory and disk, and keep none from now on."""
        if self.kept:
            self.ctx.cluster.drop(self.number)
        self.level = StorageLevel.NONE
        return self

    @property
    def is_cached(self) -> bool:
        """True if its partitions are to be kept."""
        return self.kept

    def getStorageLevel(self) -> StorageLevel:
        """Return the level at which its partitions are kept."""
        return self.level

    def toDebugString(self) -> bytes:
        """Return its lineage as text; a + marks a shuffle."""
        return debug_string(self).encode()

    def lineage(self) -> Lineage:
        """Return its lineage as data: its ancestors, cut into stages."""
        stages = cut(self, list(range(self.partitions)), count().__next__)
        return lineage_of(self, stages, self.ctx.cluster.locations)
