"""Where a kept partition may be: in a worker's memory, on its disk, or both."""

from typing import ClassVar

__all__ = ["StorageLevel"]


class StorageLevel:
    """How an RDD is kept; by PySpark's names, such as `StorageLevel.MEMORY_AND_DISK`.

    Workers keep records as bytes, so `deserialized` makes no difference, and memory
    outside the heap is memory. A partition is kept once, whatever `replication` asks:
    what is lost with a worker is computed again.
    """

    NONE: ClassVar["StorageLevel"]
    DISK_ONLY: ClassVar["StorageLevel"]
    DISK_ONLY_2: ClassVar["StorageLevel"]
    DISK_ONLY_3: ClassVar["StorageLevel"]
    MEMORY_ONLY: ClassVar["StorageLevel"]
    MEMORY_ONLY_2: ClassVar["StorageLevel"]
    MEMORY_AND_DISK: ClassVar["StorageLevel"]
    MEMORY_AND_DISK_2: ClassVar["StorageLevel"]
    OFF_HEAP: ClassVar["StorageLevel"]
    MEMORY_AND_DISK_DESER: ClassVar["StorageLevel"]

    def __init__(
        self,
        useDisk: bool,
        useMemory: bool,
        useOffHeap: bool,
        deserialized: bool,
        replication: int = 1,
    ):
        self.useDisk = useDisk
        self.useMemory = useMemory
        self.useOffHeap = useOffHeap
        self.deserialized = deserialized
        self.replication = replication

    def __repr__(self):
        return f"StorageLevel({', '.join(map(str, vars(self).values()))})"

    def __str__(self):
        words = [f"{word} " for word, used in self._places() if used]
        how = "Deserialized" if self.deserialized else "Serialized"
        return f"{''.join(words)}{how} {self.replication}x Replicated"

    def _places(self):
        yield "Disk", self.useDisk
        yield "Memory", self.useMemory
        yield "OffHeap", self.useOffHeap

    def __eq__(self, other):
        return isinstance(other, StorageLevel) and vars(self) == vars(other)

    __hash__ = None

    @property
    def words(self) -> str:
        """The same in a word or two; "" if nothing is kept."""
        places = [("memory", self.useMemory), ("disk", self.useDisk)]
        return " and ".join(word for word, used in places if used)


StorageLevel.NONE = StorageLevel(False, False, False, False)
StorageLevel.DISK_ONLY = StorageLevel(True, False, False, False)
StorageLevel.DISK_ONLY_2 = StorageLevel(True, False, False, False, 2)
StorageLevel.DISK_ONLY_3 = StorageLevel(True, False, False, False, 3)
StorageLevel.MEMORY_ONLY = StorageLevel(False, True, False, False)
StorageLevel.MEMORY_ONLY_2 = StorageLevel(False, True, False, False, 2)
StorageLevel.MEMORY_AND_DISK = StorageLevel(True, True, False, False)
StorageLevel.MEMORY_AND_DISK_2 = StorageLevel(True, True, False, False, 2)
StorageLevel.OFF_HEAP = StorageLevel(True, True, True, False)
StorageLevel.MEMORY_AND_DISK_DESER = StorageLevel(True, True, False, True)
