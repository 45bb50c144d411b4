"""A drawing of a cluster: its nodes, the links between them, responses per second.

    (0) 40/s           a link that a partition cuts is dashed, with a gap; a killed
   /   \\              node is crossed out, a paused one has two strokes; of a link
(1)─ ╳ ─(2)            cut in one direction, the half at the receiver is dashed
"""

import math
from collections.abc import Mapping, Sequence

from distlab.show.canvas.theme import GRID, INK, MUTED, WARNING, rank_color

__all__ = ["cluster_svg"]

_WIDE, _TALL, _RADIUS = 340, 230, 17
_INK, _MUTED, _LINE, _WARN = (
    f"var(--jp-ui-font-color1,{INK})",
    f"var(--jp-ui-font-color2,{MUTED})",
    f"var(--jp-border-color1,{GRID})",
    f"var(--jp-error-color1,{WARNING})",
)


def cluster_svg(
    states: Sequence[str],
    severed: frozenset[tuple[int, int]],
    answers: Mapping[tuple[int, str], int],
) -> str:
    """Return a picture of a cluster as SVG.

    states: of each node: "running", "paused" or "killed", and more words at the end.
    severed: links that are cut, as (sender, receiver). answers: (node, outcome) -> the
    number in the last second; outcomes are "ok", "failed", "unknown".
    """
    places, count = _places(len(states)), len(states)
    both = {(a, b) for a, b in severed if (b, a) in severed}
    drawn = [
        _link(places[a], places[b], (a, b) in both)
        for a in range(count)
        for b in range(a)
    ]
    drawn += [_half(places[a], places[b]) for a, b in sorted(severed - both)]
    drawn += [
        _node(place, node, states[node]) + _rate(place, node, answers)
        for node, place in enumerate(places)
    ]
    said = "; ".join(f"node {node} {state}" for node, state in enumerate(states))
    cuts = [f"{a}–{b}" for a, b in sorted(both) if a < b]
    cuts += [f"{a} to {b}" for a, b in sorted(severed - both)]
    cut = ", ".join(cuts)
    alt = f"{said}. {f'Cut: {cut}.' if cut else 'Every link works.'}"
    return (
        f'<svg viewBox="0 0 {_WIDE} {_TALL}" width="{_WIDE}" height="{_TALL}" '
        f'role="img" aria-label="{alt}" style="max-width:100%">{"".join(drawn)}</svg>'
    )


def _places(count):
    """Return (x, y) of each node, on an ellipse, node 0 on top."""
    turns = (2 * math.pi * node / count - math.pi / 2 for node in range(count))
    middle, reach = (_WIDE / 2, _TALL / 2 + 4), (105, 78)
    return [
        (middle[0] + reach[0] * math.cos(t), middle[1] + reach[1] * math.sin(t))
        for t in turns
    ]


def _link(one, other, cut):
    (x0, y0), (x1, y1) = one, other
    line = f'<path d="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}" fill="none" stroke='
    if not cut:
        return f'{line}"{_LINE}" stroke-width="2"/>'
    x, y = (x0 + x1) / 2, (y0 + y1) / 2
    return f'{line}"{_WARN}" stroke-dasharray="4 5" class="cut"/>{_cross(x, y, 6)}'


def _half(src, dst):
    """Return the half at `dst` of a link that is cut in one direction, to there."""
    (x0, y0), (x1, y1) = src, dst
    return _link(((x0 + x1) / 2, (y0 + y1) / 2), (x1, y1), True)


def _node(place, node, state):
    x, y = place
    drawn = (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{_RADIUS}" fill="{rank_color(node)}" '
        f'opacity="{0.35 if state.startswith("killed") else 1}"/>'
        f'<text x="{x:.1f}" y="{y + 5:.1f}" text-anchor="middle" font-size="14" '
        'font-weight="600" fill="#FFFFFF" stroke="#1F2933" stroke-width="2.5" '
        f'paint-order="stroke">{node}</text>'
    )
    if state.startswith("killed"):
        return drawn + _cross(x, y, _RADIUS)
    if state.startswith("paused"):
        bars = f"M{x - 12:.1f} {y + 22:.1f}v11m6 0v-11"
        drawn += f'<path d="{bars}" stroke="{_INK}" stroke-width="3"/>'
    return drawn


def _rate(place, node, answers):
    """Return labels beside a node with its outcomes in the last second."""
    x, y = place
    left = x < _WIDE / 2 - 1
    at, anchor = (x - _RADIUS - 8, "end") if left else (x + _RADIUS + 8, "start")
    rows = [(f"{answers[node, 'ok']} ok/s", _INK)]
    others = ("failed", "refused"), ("unknown", "no answer")
    rows += [(f"{answers[node, o]} {w}", _WARN) for o, w in others if answers[node, o]]
    return "".join(
        f'<text x="{at:.1f}" y="{y + 4 + 14 * row:.1f}" text-anchor="{anchor}" '
        f'font-size="12" fill="{color}">{words}</text>'
        for row, (words, color) in enumerate(rows)
    )


def _cross(x, y, reach):
    side = 2 * reach
    mark = f"M{x - reach:.1f} {y - reach:.1f}l{side} {side}m0 -{side}l-{side} {side}"
    return f'<path d="{mark}" stroke="{_WARN}" stroke-width="4" class="cross"/>'
