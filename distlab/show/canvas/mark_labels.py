"""Placement of marks' labels: once for all ranks that wrote them, never colliding.

A label "reduce-scatter, step 2 of 3" is a phase and a step: the phase is written on
the upper row where it begins, the step on the lower row, shortened where room is
scarce to the words in which it differs from the step before.

    reduce-scatter                              all-gather
    step 1 of 3    step 2 of 3    3             step 1 of 3
"""

from collections import Counter
from typing import NamedTuple

from distlab.show.canvas.text import literal, width_of

__all__ = ["LABEL_SIZE", "Label", "place_marks", "split_label"]

LABEL_SIZE = 8.25
_GAP = 0.12


class Label(NamedTuple):
    """Words on row 0, the lower, or row 1, beginning at `x` inches."""

    row: int
    x: float
    words: str
    bold: bool


def split_label(label: str) -> tuple[str, str]:
    """Return the phase and the step of a label; without a comma it is all phase."""
    phase, _, step = literal(label, 60).partition(", ")
    return phase, step


def place_marks(trace, ranks, inch, right: float) -> tuple[list[Label], int]:
    """Return the labels that fit left of `right`, and the number that did not.

    inch: maps a time to its x on the page. The k-th marks of one name on all ranks are
    one label, at the earliest of them.
    """
    labels, skipped = [], 0
    free = [0.0, 0.0]  # where the last label of each row ends
    phase_now = last_step = None

    def place(row, time_s, words, bold):
        wide = width_of(words, LABEL_SIZE, bold)
        x = min(inch(time_s), right - wide)
        if x < free[row]:
            return False
        free[row] = x + wide + _GAP
        labels.append(Label(row, x, words, bold))
        return True

    for time_s, label in _groups(trace, set(ranks)):
        phase, step = split_label(label)
        if not step:
            fits, phase_now = place(0, time_s, phase, True), None
        elif phase == phase_now or place(1, time_s, phase, True):
            short = _difference(step, last_step) if phase == phase_now else step
            fits = place(0, time_s, step, False) or place(0, time_s, short, False)
            phase_now = phase
        else:
            fits = False
        last_step = step
        skipped += not fits
    return labels, skipped


def _groups(trace, ranks):
    """Yield each label with words once, with the time of the earliest of its marks."""
    written, seen = Counter(), set()
    for event in trace.events:
        if event.kind == "mark" and event.rank in ranks and event.label:
            written[event.rank, event.label] += 1
            group = event.label, written[event.rank, event.label]
            if group not in seen:
                seen.add(group)
                yield event.start, event.label


def _difference(step, before):
    """Return `step` without the words with which `before` too begins and ends."""
    words, others = step.split(), (before or "").split()
    while words and others and words[0] == others[0]:
        words, others = words[1:], others[1:]
    while words and others and words[-1] == others[-1]:
        words, others = words[:-1], others[:-1]
    return " ".join(words) or step
