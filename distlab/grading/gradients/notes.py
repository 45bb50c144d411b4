"""What a check hears from a rank while it trains, in the order in which it was said."""

from typing import NamedTuple

__all__ = ["Difference", "Seen", "steps_of"]


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


def steps_of(notes: list[Seen]) -> list[list[Seen]]:
    """Return a rank's notes in their order, one list for each note "step"."""
    steps = []
    for seen in notes:
        if seen.kind == "step":
            steps.append([])
        elif steps:
            steps[-1].append(seen)
    return steps
