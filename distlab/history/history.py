"""`History`: the operations of several clients, as data, in a file, and drawn."""

from collections.abc import Iterable, Iterator

from distlab.trace import Operation

__all__ = ["History"]


class History:
    """Operations in the order of their starts."""

    def __init__(self, operations: Iterable[Operation] = ()):
        self.operations = sorted(operations, key=lambda operation: operation.start)

    def __iter__(self) -> Iterator[Operation]:
        return iter(self.operations)

    def __len__(self):
        return len(self.operations)
