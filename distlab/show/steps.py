"""`steps`: who sends to whom in which round, and how many bytes that makes.

               round 1     round 2    ...     bytes sent
    rank 0     →1  40 B    →1  40 B           ██████░░░┊ 240 B
               ←3          ←3                          ┊ bound

Rounds are those of `Trace.round_of_messages`: time does not show here, only order.
"""

import math

from distlab.errors import InvalidArgument
from distlab.show.grid import Grid, selected
from distlab.show.picture import Picture
from distlab.show.reading import Reading, plural, trace_of
from distlab.show.sheet import (
    MARGIN,
    PAGE_WIDTH,
    Sheet,
    bars,
    fitted,
    literal,
    pill,
    shape,
    strokes,
    width_of,
    wrapped,
    write,
)
from distlab.show.theme import GRID, INK, MUTED, TRACK, WARNING, rank_color, tint
from distlab.units import readable_bytes

__all__ = ["steps"]

_MOST = 16
_SIZE, _HEAD = 8, 8
_PITCH, _STACKED_PITCH = 0.56, 0.7
_BAR, _COUNT, _GAP_WIDTH = 1.35, 0.8, 0.3


def steps(trace, title: str = "", *, bound_bytes=None, bound_label: str = "bound") -> Picture:
    """Draw every round of messages as a column, and the bytes each rank sent in all.

    Labels of marks are written over the rounds that follow them.

    trace: a `Trace`, or anything with a `.trace`, such as a report or a failure.
    bound_bytes: what each rank should send at the least, drawn as a dashed line.

    Raises: InvalidArgument if there is no trace in it, or the bound is no number.
    """
    reading = Reading(trace_of(trace))
    _check_bound(bound_bytes)
    return _Steps(reading, title, bound_bytes, literal(bound_label, 40)).picture()


class _Steps:
    def __init__(self, reading, title, bound_bytes, bound_label):
        self.reading, self.title = reading, title
        self.bound_bytes, self.bound_label = bound_bytes, bound_label
        self.grid = Grid(reading)
        self.ranks, hidden = selected(list(range(reading.trace.world_size)), _MOST)
        self.notes = [f"Ranks {hidden[0]} to {hidden[-1]} are left out."] if hidden else []
        self._choose_columns()

    def _choose_columns(self):
        """Fix which rounds are shown, and how wide: bytes beside the peer, or under it."""
        ...
