"""`commit_states`: the states of two-phase commit, and the nodes that are in each.

coordinator   ( collects votes ) ──────────▶ ( committed )
                                    ╲ ╱
participant   ( no vote ) ──▶ ( in doubt ) ▶ ( aborted )
"""

from collections.abc import Sequence
from typing import Any

from distlab.errors import InvalidArgument
from distlab.show.canvas.canvas import (
    Canvas,
    arrow,
    inside,
    is_narrow,
    page_width,
    pill,
    points,
    strokes,
    write,
)
from distlab.show.canvas.picture import Picture
from distlab.show.canvas.theme import INK, MUTED, PAPER, rank_color, tint
from distlab.show.reading.alt_text import listed

__all__ = ["commit_states"]

# state: centre in shares of the page, row, colour
_PLACES = {
    "collects votes": (0.16, 0, rank_color(4)),
    "no vote": (0.16, 1, rank_color(4)),
    "in doubt": (0.5, 1, rank_color(1)),
    "committed": (0.84, 0, rank_color(2)),
    "aborted": (0.84, 1, rank_color(5)),
}
_STEPS = {
    ("collects votes", "committed"): "every vote is yes",
    ("collects votes", "aborted"): "a no, or a time-out",
    ("no vote", "in doubt"): "votes yes",
    ("in doubt", "committed"): "",
    ("in doubt", "aborted"): "learns it",
}
_ROW, _MOST = 1.15, 5


def commit_states(nodes: Sequence[Any], txn: int, *, title: str = "") -> Picture:
    """Draw the state of one transaction at every node of a two-phase commit.

    nodes: as an `Outcome` has them, node 0 the coordinator; None for a dead one.

    Raises: InvalidArgument for more than 5 nodes, or other objects.
    """
    try:
        states = [_state(node, txn) for node in nodes]
    except (AttributeError, TypeError):
        states = []
    if not 0 < len(states) <= _MOST:
        raise InvalidArgument(
            f"commit_states draws 1 to {_MOST} nodes of a two-phase commit, and got "
            f"{nodes!r:.80}. For example: commit_states(run.nodes, 1)"
        )
    return Picture(lambda: _drawn(states, txn, title))


def _state(node, txn):
    if node is None:
        return "dead"
    if txn in node.log:
        return "in doubt" if node.locked_by == txn else node.log[txn].state
    return (
        "collects votes" if txn in node.votes else "no vote" if node.me else "aborted"
    )


def _drawn(states, txn, title):
    dead = [me for me, state in enumerate(states) if state == "dead"]
    locked = [me for me, state in enumerate(states) if state == "in doubt"]
    note = f"Transaction {txn}. Dead: {listed(dead, _MOST) or 'none'}. "
    note += f"In doubt, with locks held: {listed(locked, _MOST) or 'none'}."
    canvas = Canvas(2 * _ROW + 0.35, title=title, subtitle=note)
    page, half = canvas.page, 0.42 if is_narrow() else 0.75

    def place(name):
        x, row, _ = _PLACES[name]
        return inside(x * page_width(), half), canvas.top + 0.65 + row * _ROW

    for (one, other), words in _STEPS.items():
        (x, y), (u, v) = place(one), place(other)
        slope = (v - y) / (u - x)
        start, end = (x + half, y + slope * half), (u - half, v - slope * half)
        arrow(page, start, end, MUTED, gid="step")
        if words and not is_narrow():
            above = 0.27 if slope else 0.12
            middle = (x + u) / 2, (y + v) / 2 - above
            write(page, *middle, words, color=MUTED, align="center")
    (x, y), (u, _) = place("no vote"), place("aborted")
    below = y + 0.52
    strokes(page, [(x, y, x, below), (x, below, u, below)], MUTED, gid="step")
    arrow(page, (u, below), (u, y + 0.34), MUTED, gid="step")
    write(page, (x + u) / 2, below + 0.12, "votes no", color=MUTED, align="center")
    for name, (_, _, color) in _PLACES.items():
        (x, y), fill = place(name), tint(color, 0.25)
        pill(page, (x - half, y - 0.28, x + half, y + 0.34), color, fill=fill)
        look = {"size": 8.5, "color": INK, "align": "center", "on": fill}
        write(page, x, y - 0.14, name, **look)
        here = [me for me, state in enumerate(states) if state == name]
        for at, me in enumerate(here):
            left = x + 0.2 * (at - (len(here) - 1) / 2)
            points(page, [left], [y + 0.14], 0, size=14, marker="o", color=INK)
            write(page, left, y + 0.14, str(me), color=PAPER, align="center", bold=True)
    for words, row in (("coordinator", 0), ("participants", 1)):
        y = canvas.top + 0.65 + row * _ROW - 0.42
        write(page, place("no vote")[0] - half, y, words, color=MUTED)
    said = (f"Node {me}: {state}." for me, state in enumerate(states))
    return canvas.described([*said, note])
