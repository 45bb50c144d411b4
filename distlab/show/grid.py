"""What goes into each cell of the step grid: who sends to whom in which round."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from distlab.show.lettering import literal
from distlab.show.marks import split_label
from distlab.show.telling import plural
from distlab.trace import Event
from distlab.units import readable_bytes

__all__ = ["Cell", "Column", "Grid", "in_common", "selected"]

_PEERS = 3
_LISTED, _TOLD = 32, 16


@dataclass
class Cell:
    """One rank in one round: its sides of the messages of that round."""

    sends: list[Event] = field(default_factory=list)
    recvs: list[Event] = field(default_factory=list)

    def outgoing(self) -> tuple[str, str]:
        """Return to whom, as "→1", and how many bytes in all, as "40 B"."""
        if not self.sends:
            return "", ""
        sent = sum(event.bytes for event in self.sends)
        return "→" + _named(self.sends), readable_bytes(sent)

    def incoming(self) -> str:
        """Return from whom, as "←3"."""
        return "←" + _named(self.recvs) if self.recvs else ""


class Column(NamedTuple):
    """A round of the grid. number: counted from 1. phase, step: what ranks marked."""

    number: int
    phase: str
    step: str
    cells: dict[int, Cell]


class Grid:
    """Every round as a column of cells, and what never ended.

    stuck: for each rank with something that never ended, the words of that.
    fault: for each rank with one, the latest.
    """

    def __init__(self, reading):
        self.reading = reading
        cells = defaultdict(lambda: defaultdict(Cell))
        events = defaultdict(list)
        for (send, recv), number in reading.numbered:
            if send is not None:
                cells[number][send.rank].sends.append(send)
            if recv is not None:
                cells[number][recv.rank].recvs.append(recv)
            events[number] += [event for event in (send, recv) if event is not None]
        marks = _Marks(reading.trace)
        self.columns = [
            Column(number, *marks.above(events[number]), cells[number])
            for number in range(1, reading.rounds + 1)
        ]
        self.stuck, self.fault = {}, {}
        for event in reading.trace.events:
            if event.kind == "fault":
                self.fault[event.rank] = literal(event.label, 16)
            elif event.end is None and event.kind != "mark":
                arrow = {"send": f"→{event.peer}", "recv": f"←{event.peer}"}
                words = arrow.get(event.kind, literal(event.label or event.kind, 16))
                self.stuck.setdefault(event.rank, []).append(words)

    def stuck_words(self, rank: int) -> str:
        """Return what of a rank never ended, as "→1 ←3", or nothing."""
        words = self.stuck.get(rank, [])
        return " ".join([*words[:3], f"+{len(words) - 3}"] if len(words) > 3 else words)

    def broken_heading(self) -> str:
        """Return the heading over faults and what never ended, empty without them."""
        headings = {"fault": self.fault, "never ended": self.stuck}
        return " / ".join(words for words, ranks in headings.items() if ranks)

    def sentences(self) -> list[str]:
        """Return a sentence for each of the first rounds, with its messages if few."""
        few = len(self.reading.numbered) <= _LISTED
        return [_told(column, few) for column in self.columns[:_TOLD]]


def _told(column, few):
    """Return what happened in a round: each message if they are few, else their sum."""
    name = [f"Round {column.number}", column.phase, column.step]
    said = ", ".join(word for word in name if word)
    cells = column.cells
    sends = [event for rank in sorted(cells) for event in cells[rank].sends]
    pairs = [f"{event.rank} to {event.peer}" for event in sends]
    sizes = [readable_bytes(event.bytes) for event in sends]
    if not sends:
        return f"{said}: no send is recorded."
    if not few:
        sent = readable_bytes(sum(event.bytes for event in sends))
        return f"{said}: {plural(len(sends), 'message')}, {sent}."
    if len(set(sizes)) == 1:
        each = " each" if len(sends) > 1 else ""
        return f"{said}: {', '.join(pairs)}, {sizes[0]}{each}."
    each = [f"{pair} ({size})" for pair, size in zip(pairs, sizes, strict=True)]
    return f"{said}: {', '.join(each)}."


def selected(things: list, most: int) -> tuple[list, list]:
    """Return those of `things` that are shown, the first and the last, and the rest."""
    if len(things) <= most:
        return things, []
    return [*things[: most - 1], things[-1]], things[most - 1 : -1]


def in_common(labels: list[str]) -> tuple[str, list[str]]:
    """Return the words that all labels begin with, and what each has of its own.

    Of "step 1 of 3" and "step 2 of 3" that is "step", and "1" and "2".
    """
    words, first, last = [label.split() for label in labels], 0, 0
    if len(set(labels)) == 1:
        return "", labels
    most = min(map(len, words)) - 1
    while first < most and len({own[first] for own in words}) == 1:
        first += 1
    while first + last < most and len({own[-1 - last] for own in words}) == 1:
        last += 1
    own = [" ".join(own[first : len(own) - last]) for own in words]
    return " ".join(words[0][:first]), own


class _Marks:
    """The labels that each rank had written by the time of an event."""

    def __init__(self, trace):
        self._of = defaultdict(list)
        for event in trace.events:
            if event.kind == "mark":
                self._of[event.rank].append(event)
        self._at = Counter()

    def above(self, events) -> tuple[str, str]:
        """Return phase and step of the latest label, if more than half agree on it.

        Rounds must be asked for in order: a rank's marks are passed only once.
        """
        labels = Counter()
        for event in sorted(events, key=lambda event: event.start):
            marks, at = self._of[event.rank], self._at[event.rank]
            while at < len(marks) and _before(marks[at], event):
                at += 1
            self._at[event.rank] = at
            if at:
                labels[marks[at - 1].label] += 1
        if not labels:
            return "", ""
        label, count = labels.most_common(1)[0]
        return split_label(label) if 2 * count > sum(labels.values()) else ("", "")


def _before(mark, event):
    """Return whether a mark came before a call; on a virtual clock times can tie."""
    return (mark.start, mark.step) < (event.start, event.step)


def _named(events):
    peers = [event.peer for event in events]
    peers = [send if send is not None else "?" for send in dict.fromkeys(peers)]
    more = f"+{len(peers) - _PEERS}" if len(peers) > _PEERS else ""
    return ",".join(str(peer) for peer in peers[:_PEERS]) + more
