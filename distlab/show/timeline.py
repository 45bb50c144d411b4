"""`timeline`: one lane per rank, and in it what the rank did with its time.

    rank 0   ███░░░░████   upper half: sending       █ a message moves
             ░░░████████   lower half: receiving     ░ waiting for the partner

A rank that sends and receives at once can wait for one neighbour while it is served
by the other; two halves show both, and the grey of both adds up to `Trace.waited_s`.
"""

from distlab.show.axis import Clock
from distlab.show.lanes import Lanes
from distlab.show.lettering import width_of
from distlab.show.marks import LABEL_SIZE, place_marks
from distlab.show.picture import Picture
from distlab.show.reading import Reading, left_out, plural, trace_of
from distlab.show.sheet import MARGIN, PAGE_WIDTH, Sheet, strokes, write
from distlab.show.theme import GRID, INK, MUTED, WAITING, WARNING, rank_color, tint

__all__ = ["timeline"]

_MOST_LANES, _MOST_ARROWS = 64, 300
_ROW = 0.18
_BLUE = rank_color(0)
_KEY = {
    "moving": ({"color": _BLUE}, "colour: a message moves"),
    "waiting": ({"color": WAITING}, "grey: waiting for the partner"),
    "stuck": (
        {"color": tint(WARNING, 0.1), "edge": WARNING, "dashed": True},
        "dashed: never ended",
    ),
    "together": (
        {"color": tint(_BLUE, 0.15), "edge": tint(_BLUE, 0.5), "hatch": "////"},
        "hatched: barrier or collective",
    ),
}


def timeline(trace, title: str = "") -> Picture:
    """Draw what every rank did over time, rank 0 on top.

    Arrows go from the start of a send to the end of its recv. Marks are ticks; a label
    that several ranks wrote is written once, and left out where it would collide.

    trace: a `Trace`, or anything with a `.trace`, such as a report or a failure.

    Raises: InvalidArgument if there is no trace in it.
    """
    reading = Reading(trace_of(trace))
    ranks, notes = _chosen(reading.trace.world_size)
    arrows = len(reading.messages) <= _MOST_ARROWS
    if not arrows:
        notes.append(f"Arrows are left out: {plural(len(reading.messages), 'message')}.")
    clock = Clock(reading)
    lanes = Lanes(reading, ranks, clock.edge_s)
    left = MARGIN + 0.35 + max(width_of(f"rank {rank}", lanes.size) for rank in [*ranks, 0])
    clock.spread(left, PAGE_WIDTH - MARGIN - lanes.stuck_width())
    labels, skipped = place_marks(reading.trace, ranks, clock.inch, PAGE_WIDTH - MARGIN)
    above = 0.12 + _ROW * len({label.row for label in labels})
    sheet = Sheet(
        above + lanes.height + 0.5,
        title=title,
        subtitle=" ".join([reading.headline() + ".", *notes]),
        key=_key(lanes),
    )
    top = sheet.top + above
    for row, x, words, bold in labels:
        y = top - 0.12 - _ROW * row
        write(sheet.page, x, y, words, size=LABEL_SIZE, color=INK if bold else MUTED, bold=bold)
        if not row:
            strokes(sheet.page, [(x, y + 0.07, x, top + 0.02)], GRID)
    clock.draw(sheet.page, top, lanes.height)
    size = (clock.right - left, lanes.height)
    panel = sheet.panel(left, top, *size, x=clock.limits, y=(lanes.height, 0))
    lanes.draw(panel, clock, arrows=arrows)
    lanes.name(sheet.page, MARGIN, top, clock.right)
    if not lanes.spans:
        middle = (clock.left + clock.right) / 2, top + lanes.height / 2
        words = "no messages were sent"
        write(sheet.page, *middle, words, size=10, color=MUTED, align="center", on="#FFFFFF")
    if skipped:
        notes.append(f"{plural(skipped, 'label')} of marks left out for lack of room.")
    said = [f"Timeline of {reading.headline()}.", *reading.sentences(), *notes]
    return Picture(sheet.figure, " ".join(said))


def _chosen(world_size):
    """Return the ranks that get a lane, and a sentence about the others."""
    if world_size <= _MOST_LANES:
        return list(range(world_size)), []
    ranks = [*range(_MOST_LANES - 1), world_size - 1]
    return ranks, [left_out("rank", _MOST_LANES - 1, world_size - 2)]


def _key(lanes):
    halves = [(None, "upper half: sends, lower half: receives")]
    kinds = {span.kind for span in lanes.spans}
    return [_KEY[state] for state in _KEY if state in lanes.states] + (
        halves if kinds & {"send", "recv"} else []
    )
