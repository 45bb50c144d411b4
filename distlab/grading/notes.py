"""What a probe notes in the trace, and a check reads there, also of a failed run."""

from typing import NamedTuple

__all__ = ["Difference", "Seen", "buckets_of", "note", "steps_of"]

_SIGN = "(check)"


class Seen(NamedTuple):
    """One note. kind: such as "start"; what: its words, such as ["1", "2.bias"]."""

    kind: str
    what: list[str]


class Difference(NamedTuple):
    """The first number of a parameter's gradient that is wrong on a rank.

    place: in the flattened gradient. likeness: what the gradient is instead, in a word.
    """

    step: int
    parameter: str
    place: int
    expected: float
    found: float
    likeness: str


def note(comm, kind: str, *what: str) -> None:
    """Write a note into the trace of this rank."""
    comm.mark(" ".join([_SIGN, kind, *what]))


def buckets_of(trace) -> list[list[str]]:
    """Return the names in each bucket, from the notes "bucket" of rank 0."""
    return [seen.what for seen in _notes(trace, 0) if seen.kind == "bucket"]


def steps_of(trace, rank: int) -> list[list[Seen]]:
    """Return a rank's notes in their order, one list for each note "step"."""
    steps = []
    for seen in _notes(trace, rank):
        if seen.kind == "step":
            steps.append([])
        elif steps:
            steps[-1].append(seen)
    return steps


def _notes(trace, rank):
    for event in trace.of(rank, "mark"):
        sign, *words = event.label.split(" ")
        if sign == _SIGN:
            yield Seen(words[0], words[1:])
