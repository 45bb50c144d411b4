"""`RaftLog`: the entries of one node, from its snapshot on, in memory and on disk."""

from typing import Any

from distlab.agree.raft.messages import Members, RaftEntry, RaftSnapshot
from distlab.errors import CorruptLog

__all__ = ["RaftLog"]


class RaftLog:
    """The log of one node.

    snapshot: replaces the entries up to its index, `base`; index 0 of none.
    entries: those from index base + 1 on.
    Invariant: indexes rise by one, and terms never fall.
    """

    def __init__(self, snapshot: RaftSnapshot, entries: list[RaftEntry]):
        self.snapshot, self.entries = snapshot, entries
        self.base = snapshot.index

    @classmethod
    def load(cls, saved: dict[str, Any], members: tuple) -> "RaftLog":
        """Make the log that a disk holds; `members` are those of an empty one.

        After a crash between the two writes of `Raft.install`, the entries on disk are
        of the time before the snapshot, and are kept by the rule of `compact`.

        Raises: CorruptLog naming the first entry that cannot be right.
        """
        snapshot = saved.get("snapshot", RaftSnapshot(0, 0, members))
        index, term, log = snapshot.index, snapshot.term, saved.get("log", ())
        conflict = any(e.index == index and e.term != term for e in log)
        entries = [] if conflict else [e for e in log if e.index > index]
        before = snapshot
        for entry in entries:
            if entry.index != before.index + 1 or entry.term < before.term:
                raise CorruptLog(
                    f"the log on disk has index {entry.index} of term {entry.term} "
                    f"after index {before.index} of term {before.term}, as no node "
                    "writes it. The other members have the entries: remove this one, "
                    "and add a node of another number, with an empty disk."
                )
            before = entry
        return cls(snapshot, entries)

    @property
    def last(self) -> int:
        """The index of the last entry."""
        return self.base + len(self.entries)

    def term(self, index: int) -> int | None:
        """Return the term of the entry at an index, None if it is not here."""
        at = index - self.base - 1
        if 0 <= at < len(self.entries):
            return self.entries[at].term
        return self.snapshot.term if index == self.base else None

    def entry(self, index: int) -> RaftEntry:
        """Return the entry at an index after the snapshot's."""
        return self.entries[index - self.base - 1]

    def since(self, index: int, most: int) -> tuple[RaftEntry, ...]:
        """Return up to `most` entries from an index on."""
        at = index - self.base - 1
        return tuple(self.entries[at : at + most])

    def cut(self, last: int) -> None:
        """Remove the entries after index `last`."""
        del self.entries[last - self.base :]

    def members(self, index: int) -> tuple[int, tuple[int, ...]]:
        """Return (index, members) of the last change of members up to an index."""
        for entry in reversed(self.entries[: index - self.base]):
            if type(entry.command) is Members:
                return entry.index, entry.command.nodes
        return self.base, self.snapshot.members

    def compact(self, snapshot: RaftSnapshot) -> None:
        """Replace entries by a snapshot; keep those after it if they follow it."""
        follows = self.term(snapshot.index) == snapshot.term
        kept = self.entries[snapshot.index - self.base :] if follows else []
        self.snapshot, self.base, self.entries = snapshot, snapshot.index, kept
