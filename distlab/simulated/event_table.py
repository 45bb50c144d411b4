"""Events of a simulated run as rows of bytes, and the trace made from them.

A run of a thousand ranks has millions of messages; as rows they take 60 bytes each,
and most counts need no more than that. Events are made on demand.
"""

from functools import cached_property
from struct import Struct

from distlab.errors import ExtraMissing
from distlab.trace import Event, Trace

with ExtraMissing.named("a world of simulated ranks"):
    import numpy as np

__all__ = ["EventTable", "SimulatedTrace", "message_row"]

# A message: from, to, bytes; the times of its send, its receive and its arrival; the
# steps of its sender and its receiver; its round; the number of its group.
_MESSAGE = [("src", "i4"), ("dst", "i4"), ("bytes", "i8"), ("sent", "f8")]
_MESSAGE += [("asked", "f8"), ("end", "f8"), ("step", "i4"), ("other", "i4")]
_MESSAGE += [("round", "i4"), ("group", "i4")]
_ROW = Struct("=2iq3d4i")
message_row = _ROW.pack
_END, _END_AT = Struct("=d"), 32

# Anything else: rank, start, end, step, numbers of its label and its group.
_POINT = Struct("=i2d3i")


class EventTable:
    """The rows of one run, in the order in which messages were matched."""

    def __init__(self, world_size: int):
        self.world_size = world_size
        self.messages, self._points = bytearray(), bytearray()  # grows by `message_row`
        self._labels, self._groups = {}, {"": 0}

    def number_of(self, group: str) -> int:
        """Return the number of a group, a new one for a new name."""
        return self._groups.setdefault(group, len(self._groups))

    @property
    def groups(self) -> list[str]:
        """The groups, each at its number."""
        return list(self._groups)

    def ends(self, row: int, at: float) -> None:
        """Set the end of the message whose row begins at byte `row`."""
        _END.pack_into(self.messages, row + _END_AT, at)

    def point(self, rank, start, end, step, what, group=0) -> None:
        """Add an event other than a message: the label of a mark, or (kind, label)."""
        number = self._labels.setdefault(what, len(self._labels))
        self._points.extend(_POINT.pack(rank, start, end, step, number, group))

    def counts(self) -> dict[tuple[int, int, int], int]:
        """Return (src, dst, group) -> its number of messages."""
        ways = self.rows()[["src", "dst", "group"]]
        ways, counts = np.unique(ways, return_counts=True)
        return dict(zip(ways.tolist(), counts.tolist(), strict=True))

    def rows(self) -> np.ndarray:
        """Return the messages, one in a row."""
        return np.frombuffer(self.messages, dtype=_MESSAGE).copy()

    def events(self) -> list[Event]:
        """Return everything as events, ordered by start."""
        events, groups = [], self.groups
        for src, dst, size, sent, asked, end, *steps, _, group in self.rows().tolist():
            (step, other), group = steps, groups[group]
            events.append(Event(src, sent, end, "send", dst, size, step, "", group))
            events.append(Event(dst, asked, end, "recv", src, size, other, "", group))
        labels = list(self._labels)
        for rank, start, end, step, number, group in _POINT.iter_unpack(self._points):
            label, group = labels[number], groups[group]
            kind, words = label if isinstance(label, tuple) else ("mark", label)
            events.append(Event(rank, start, end, kind, None, 0, step, words, group))
        return events


class SimulatedTrace(Trace):
    """A trace whose counts come from rows, and whose events are made on demand.

    A run that did not finish also has `unfinished` events, without an end.
    """

    def __init__(self, table: EventTable, unfinished=(), cut_s: float | None = None):
        self.world_size, self.cut_s, self.shares = table.world_size, cut_s, None
        self._table, self._unfinished = table, list(unfinished)

    @cached_property
    def events(self) -> list[Event]:
        """Every event, ordered by start."""
        events = [*self._table.events(), *self._unfinished]
        return sorted(events, key=lambda event: event.start)

    @cached_property
    def _rows(self):
        return self._table.rows()

    def bytes_sent(self, rank: int) -> int:
        """Return the payload bytes of the messages that `rank` handed over, exactly."""
        return int(self._rows["bytes"][self._rows["src"] == rank].sum())

    def bytes_received(self, rank: int) -> int:
        """Return the payload bytes of the messages that `rank` received."""
        return int(self._rows["bytes"][self._rows["dst"] == rank].sum())

    def messages_sent(self, rank: int) -> int:
        """Return the number of messages that `rank` handed over."""
        return int((self._rows["src"] == rank).sum())

    def rounds(self) -> int:
        """Return the length of the longest chain of messages, one after another."""
        return int(self._rows["round"].max(initial=0))

    def duration_s(self) -> float:
        """Return the seconds from the first event's start to the last event's end."""
        rows = self._rows
        if self._unfinished or not len(rows):
            return super().duration_s()
        return float(rows["end"].max() - min(rows["sent"].min(), rows["asked"].min()))
