"""`timeline`: one lane per rank, and in it the rank's messages, waiting and work.

    rank 0   ░░░░██████  ░░██████      █ a message of its own moves
                    ╲       ╲          ░ it is in a call, and waits for its partner
    rank 1       ████▼      ░████▼

The grey of a lane adds up to `Trace.waited_s`.
"""

from collections.abc import Iterable

from distlab.show.canvas.canvas import (
    MARGIN,
    Canvas,
    page_width,
    strokes,
    underlay,
    write,
)
from distlab.show.canvas.mark_labels import LABEL_SIZE, place_marks
from distlab.show.canvas.picture import Picture
from distlab.show.canvas.rank_lanes import RankLanes
from distlab.show.canvas.theme import (
    GRID,
    INK,
    MUTED,
    WAITING,
    WARNING,
    rank_color,
    tint,
)
from distlab.show.canvas.time_axis import TimeAxis
from distlab.show.figures.nodes import nodes
from distlab.show.figures.tasks import tasks
from distlab.show.reading.alt_text import clocks, headline, left_out, plural, sentences
from distlab.show.reading.rounds import selected
from distlab.show.reading.trace_reading import Reading, trace_of

__all__ = ["timeline"]

_MOST_LANES, _MOST_ARROWS = 64, 300
_ROW = 0.18
_PALE, _EDGE = tint(rank_color(0), 0.15), tint(rank_color(0), 0.5)
_TOGETHER = {"color": _PALE, "edge": _EDGE, "hatch": "////"}
_STUCK = {"color": tint(WARNING, 0.1), "edge": WARNING, "dashed": True}
_KEY = {
    "moving": ({"color": rank_color(0)}, "colour: a message moves"),
    "waiting": ({"color": WAITING}, "grey: waiting for its peer"),
    "stuck": (_STUCK, "dashed: never ended"),
    "together": (_TOGETHER, "hatched: barrier or collective"),
    "working": ({"color": INK}, "dark strip: its own work"),
}


def timeline(
    trace,
    title: str = "",
    *,
    between: tuple[str, str] | None = None,
    ranks: Iterable[int] | None = None,
) -> Picture:
    """Draw every rank's messages, waiting and work over time, rank 0 on top.

    Arrows go from the start of a send to the end of its recv. Marks are ticks; a label
    that several ranks wrote is written once, and left out where it would collide.

    trace: a `Trace`, or anything with a `.trace`, such as a report or a failure.
    between: two marks that all ranks have set. The time from one to the other is drawn,
        without arrows and marks, and the time each rank waited in the whole run.
    ranks: those that are drawn, such as `range(8)`; all by default.

    Of workers it draws their tasks: see `tasks`; of nodes their messages: see `nodes`.

    Raises: InvalidArgument if there is no trace in it.
    """
    trace = trace_of(trace)
    if trace.who == "node":
        return nodes(trace, title)
    if trace.who != "rank":
        return tasks(trace, title)
    whole, every = Reading(trace), range(trace.world_size)
    asked = [*every] if ranks is None else [rank for rank in ranks if rank in every]
    return Picture(lambda: _drawn(trace, whole, between, asked, title))


def _drawn(trace, whole, between, asked, title):
    reading = whole.between(*between) if between else whole
    ranks, hidden = selected(asked, _MOST_LANES)
    notes = [left_out("rank", hidden[0], hidden[-1])] if hidden else []
    if len(asked) < trace.world_size:
        notes.append(f"Drawn: {plural(len(ranks), 'rank')} of {trace.world_size}.")
    notes += clocks(trace)
    arrows, clock = _arrows(whole, between, notes), TimeAxis(reading)
    if between:
        clock.caption = f"time since {between[0]}, {clock.unit}"
    lanes = RankLanes(reading, ranks, clock.edge_s, totals=bool(between))
    left, right = MARGIN + lanes.name_width + 0.15, page_width() - MARGIN
    clock.spread(left, right - lanes.stuck_width)
    labels, skipped = place_marks(reading.trace, ranks, clock.inch, right)
    above = 0.12 + _ROW * len({label.row for label in labels})
    room = above + lanes.height + 0.5
    subtitle = " ".join([f"{headline(whole)}.", *notes])
    canvas = Canvas(room, title=title, subtitle=subtitle, key=_key(lanes))
    top = canvas.top + above
    _draw_labels(canvas.page, top, labels)
    if whole.trace.events:
        clock.draw(canvas.page, top, lanes.height)
    size = clock.right - clock.left, lanes.height
    panel = canvas.panel(left, top, *size, x=clock.limits, y=(lanes.height, 0))
    lanes.draw(panel, clock, arrows=arrows)
    lanes.name(canvas.page, MARGIN, top, clock.right)
    if not lanes.spans:
        _draw_emptiness(canvas.page, clock, top + lanes.height / 2)
    if skipped:
        notes.append(f"{plural(skipped, 'label')} of marks left out for lack of room.")
    said = [f"Timeline of {headline(whole)}.", *sentences(whole), *notes]
    return canvas.described(said)


def _arrows(reading, between, notes):
    """Return True if arrows are drawn; add a note on what is left out."""
    count = len(reading.messages)
    if between:
        notes.append(f"Drawn: from {between[0]} to {between[1]}.")
    elif count > _MOST_ARROWS:
        notes.append(f"Arrows are left out: {plural(count, 'message')}.")
    return not between and count <= _MOST_ARROWS


def _draw_emptiness(page, clock, y):
    x, said = (clock.left + clock.right) / 2, "no messages were sent"
    underlay(write(page, x, y, said, size=10, color=MUTED, align="center"))


def _key(lanes):
    """Return the legend's entries for the colours that are in the picture."""
    states = {span.state for span in lanes.spans}
    return [entry for state, entry in _KEY.items() if state in states]


def _draw_labels(page, top, labels):
    for row, x, words, bold in labels:
        y, color = top - 0.12 - _ROW * row, INK if bold else MUTED
        write(page, x, y, words, size=LABEL_SIZE, color=color, bold=bold)
        if not row:
            strokes(page, [(x, y + 0.07, x, top + 0.02)], GRID)
