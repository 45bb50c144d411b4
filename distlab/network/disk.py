"""`MemoryDisk`: a node's disk in a simulation or a search, and its losses in a crash.

Each write is kept with how to undo it until a sync covers it, and the last one always,
so a write costs no more on a long list than on a short one.
"""

from typing import Any

from distlab.errors import InvalidArgument
from distlab.network.node import Append, Save, Truncate

__all__ = ["MemoryDisk", "check_list"]

_ABSENT = ()


class MemoryDisk:
    """A disk: name -> value, of an `Append` a list.

    journal: the last writes, oldest first, as (name, kind, what they replaced).
    unsynced: how many of them no finished sync covers. written: the number of writes.
    """

    __slots__ = ("journal", "unsynced", "values", "written")

    def __init__(self):
        self.values: dict[str, Any] = {}
        self.journal: list[tuple] = []
        self.unsynced = self.written = 0

    def write(self, effect: Save | Append | Truncate) -> None:
        """Carry out a write."""
        name, what = effect
        kind, values = type(effect), self.values
        if kind is not Save:
            check_list(values.get(name, []), effect)
        if kind is Save:
            undo = (name, "value", (values[name],) if name in values else _ABSENT)
            values[name] = what
        elif kind is Append:
            undo = (name, "item" if name in values else "value", _ABSENT)
            values.setdefault(name, []).append(what)
        else:
            kept = values.get(name, [])
            undo = (name, "tail", tuple(kept[what:]))
            del kept[what:]
        self.journal.append(undo)
        self.unsynced += 1
        self.written += 1
        del self.journal[: -max(self.unsynced, 1)]

    def synced(self, written: int) -> None:
        """Note that a sync has finished that covers the first `written` writes."""
        self.unsynced = min(self.unsynced, self.written - written)
        del self.journal[: -max(self.unsynced, 1)]

    def lose(self, what: str) -> None:
        """Lose what a crash takes: see `loses` of `distlab.faults.Crash`."""
        if what == "disk":
            self.values, self.journal = {}, []
        else:
            count = {"": 0, "unsynced": self.unsynced, "last write": 1}[what]
            for _ in range(min(count, len(self.journal))):
                self._undo(*self.journal.pop())
        self.unsynced = min(self.unsynced, len(self.journal))

    def _undo(self, name, kind, before):
        if kind == "item":
            self.values[name].pop()
        elif kind == "tail":
            self.values.get(name, []).extend(before)
        elif before:
            (self.values[name],) = before
        else:
            del self.values[name]


def check_list(kept: Any, effect: Append | Truncate) -> None:
    """Check that the disk has a list where an item is to be added, or it is to be cut.

    Raises: InvalidArgument.
    """
    if not isinstance(kept, list):
        raise InvalidArgument(
            f"a node gave {effect}, but the value saved as {effect.name!r} is "
            f"{kept!r}, and no list. Append and Truncate are for lists."
        )
