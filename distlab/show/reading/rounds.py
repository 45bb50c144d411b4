"""Rounds of messages, the labels that they are under, and a selection for display."""

from collections import Counter, defaultdict

from distlab.show.canvas.mark_labels import split_label

__all__ = ["in_common", "rounds_of", "selected"]


def rounds_of(reading) -> list[tuple[int, str, str]]:
    """Return each round's number, from 1, and phase and step of most of its events."""
    events = defaultdict(list)
    for message, number in reading.numbered:
        events[number] += [event for event in message if event is not None]
    marks = _Marks(reading.trace)
    numbers = range(1, reading.rounds + 1)
    return [(number, *marks.above(events[number])) for number in numbers]


def selected(things: list, most: int) -> tuple[list, list]:
    """Return those of `things` that are shown, the first and the last, and the rest."""
    if len(things) <= most:
        return things, []
    return [*things[: most - 1], things[-1]], things[most - 1 : -1]


def in_common(labels: list[str]) -> tuple[str, list[str]]:
    """Return the words that all labels begin with, and the rest of each.

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

        Call it for rounds in order: a rank's marks are passed only once.
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
    """Return True if a mark precedes a call; on a virtual clock times can tie."""
    return (mark.start, mark.step) < (event.start, event.step)
