"""What happened in a simulated run, row by row, and the trace that it makes.

A run of a thousand ranks has millions of messages; as rows of numbers they take 72
bytes each, and most counts need no more than that. Events are made when asked for.
"""

from array import array
from functools import cached_property

import numpy as np

from distlab.trace import Event, Trace

__all__ = ["SimulatedTrace", "Table"]

_MESSAGE, _POINT = 9, 5  # numbers in a row


class Table:
    """The rows of one run, in the order in which things were matched."""

    def __init__(self, world_size: int):
        self.world_size = world_size
        self._messages, self._points = array("d"), array("d")
        self._labels = {}
        # A message is noted as src, dst, bytes, when it was sent and asked for, when it
        # ended, both sides' steps, and its round; this is called for each of millions.
        self.message = self._messages.extend

    def point(self, rank, start, end, step, what) -> None:
        """Note what is no message: the label of a mark, or else (kind, label)."""
        number = self._labels.setdefault(what, len(self._labels))
        self._points.extend((rank, start, end, step, number))

    def counts(self) -> dict[tuple[int, int], int]:
        """Return (src, dst) -> how many messages went there."""
        pairs, counts = np.unique(self.rows()[:, :2], axis=0, return_counts=True)
        return dict(zip(map(tuple, pairs.tolist()), counts.tolist(), strict=True))

    def rows(self) -> np.ndarray:
        """Return the messages, one in a row."""
        return np.frombuffer(self._messages, dtype=float).reshape(-1, _MESSAGE).copy()

    def events(self) -> list[Event]:
        """Return everything as events, ordered by start."""
        events = []
        for src, dst, size, sent, asked, end, step, other, _ in self.rows().tolist():
            a, b, size = int(src), int(dst), int(size)
            events.append(Event(a, sent, end, "send", b, size, int(step), ""))
            events.append(Event(b, asked, end, "recv", a, size, int(other), ""))
        labels = list(self._labels)
        points = np.frombuffer(self._points, dtype=float).reshape(-1, _POINT)
        for rank, start, end, step, number in points.tolist():
            label = labels[int(number)]
            kind, words = label if isinstance(label, tuple) else ("mark", label)
            where = (int(rank), start, end, kind, None, 0, int(step), words)
            events.append(Event(*where))
        return events


class SimulatedTrace(Trace):
    """A trace whose counts come from rows, and whose events are made when asked for.

    A run that did not finish also has `unfinished` events, without an end.
    """

    def __init__(self, table: Table, unfinished=(), cut_s: float | None = None):
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
        return int(self._rows[self._rows[:, 0] == rank, 2].sum())

    def bytes_received(self, rank: int) -> int:
        """Return the payload bytes of the messages that `rank` was given."""
        return int(self._rows[self._rows[:, 1] == rank, 2].sum())

    def messages_sent(self, rank: int) -> int:
        """Return the number of messages that `rank` handed over."""
        return int((self._rows[:, 0] == rank).sum())

    def rounds(self) -> int:
        """Return the length of the longest chain of messages, one after another."""
        return int(self._rows[:, 8].max(initial=0))

    def duration_s(self) -> float:
        """Return the seconds from the first event's start to the last event's end."""
        if self._unfinished or not len(self._rows):
            return super().duration_s()
        return float(self._rows[:, 5].max() - self._rows[:, 3:5].min())
