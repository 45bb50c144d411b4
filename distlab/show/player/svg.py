"""SVG primitives of the still pictures.

Everything is styled by class: `f3` is filled in the colour of rank 3, `s3` is drawn in
it, `n3` is a number written on it. Points are (x, y), boxes (x, y, width, height).
"""

import math
from collections.abc import Mapping
from html import escape

from distlab.show.canvas.theme import INK, PAPER, RANK_COLORS

__all__ = [
    "box", "circle", "color_of", "cross", "curve", "head", "marker", "paths", "point",
    "rank_style", "rect", "text",
]  # fmt: skip


def color_of(rank: int) -> int:
    """Return the index of a rank's colour in RANK_COLORS."""
    return rank % len(RANK_COLORS)


def text(name, x, y, words, size, anchor="start", extra="") -> str:
    """Return words as a text element, escaped."""
    return (
        f'<text class="{name}" x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" '
        f'text-anchor="{anchor}"{extra}>{escape(words)}</text>'
    )


def box(name, x, y, wide, tall, rounded, extra="") -> str:
    """Return a rounded rectangle."""
    return (
        f'<rect class="{name}" x="{x:.1f}" y="{y:.1f}" width="{max(0, wide):.1f}" '
        f'height="{tall:.1f}" rx="{rounded}"{extra}/>'
    )


def circle(name, x, y, radius) -> str:
    """Return a circle."""
    return f'<circle class="{name}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}"/>'


def marker(rank, x, y, radius) -> str:
    """Return the marker of a rank: another shape after six, when colours repeat."""
    name, node_step = f"f{color_of(rank)}", rank // len(RANK_COLORS) % 3
    if not node_step:
        return circle(name, x, y, radius)
    half = 0.88 * radius
    turned = f' transform="rotate({45 * node_step - 45} {x:.1f} {y:.1f})"'
    return box(name, x - half, y - half, 2 * half, 2 * half, 0.3 * half, turned)


def paths(groups: Mapping[str, list[str]]) -> str:
    """Return one path for each class, of all its path data."""
    return "".join(
        f'<path class="{name}" d="{"".join(data)}"/>' for name, data in groups.items()
    )


def rect(x, y, wide, tall) -> str:
    """Return a rectangle as path data."""
    return f"M{x:.1f} {y:.1f}h{wide:.1f}v{tall:.1f}h{-wide:.1f}z"


def cross(x, y, reach) -> str:
    """Return a diagonal cross as path data."""
    side = f"{2 * reach:.1f}"
    return f"M{x - reach:.1f} {y - reach:.1f}l{side} {side}m0 -{side}l-{side} {side}"


def curve(way) -> str:
    """Return a quadratic curve (x0, y0, cx, cy, x1, y1) as path data."""
    return "M{:.1f} {:.1f}Q{:.1f} {:.1f} {:.1f} {:.1f}".format(*way)


def head(way, size=12) -> str:
    """Return an arrowhead at the end of a curve as path data."""
    _, _, cx, cy, x, y = way
    angle = math.atan2(y - cy, x - cx)
    corners = [(x, y)]
    for side in (angle - 0.42, angle + 0.42):
        corners.append((x - size * math.cos(side), y - size * math.sin(side)))
    return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in corners) + "z"


def point(way, t) -> tuple[float, float]:
    """Return the point on a curve at `t`, from 0 to 1."""
    x0, y0, cx, cy, x1, y1 = way
    a, b, c = (1 - t) ** 2, 2 * t * (1 - t), t * t
    return a * x0 + b * cx + c * x1, a * y0 + b * cy + c * y1


def rank_style() -> str:
    """Return the rules that give each rank its colour, and numbers that read on it."""
    rules = []
    for index, color in enumerate(RANK_COLORS):
        red, green, blue = (int(color[at : at + 2], 16) for at in (1, 3, 5))
        light = 0.299 * red + 0.587 * green + 0.114 * blue > 140
        rules.append(f".f{index}{{fill:{color}}}.s{index}{{stroke:{color}}}")
        halo = f"stroke:{color};stroke-width:3;paint-order:stroke"
        rules.append(f".n{index}{{fill:{INK if light else PAPER};{halo}}}")
    return "".join(rules)
