"""The sheet that pictures are drawn on: inches from the top left, and literal text.

Everything that touches matplotlib's drawing is here, and matplotlib loads with the
first `Sheet`. No pyplot, so no figure outlives its picture and no setting of the
learner's changes how it looks. Text is placed by its measured width, so that whoever
draws can tell before drawing whether two labels would collide.
"""

import logging
import warnings
from functools import lru_cache

from distlab.show.theme import GRID, INK, MUTED, PAPER, rank_color, rank_marker

__all__ = ["MARGIN", "PAGE_WIDTH", "Sheet", "arrow", "bars", "fitted", "literal", "pill", "shape", "strokes",
           "width_of", "wrapped", "write"]  # fmt: skip

PAGE_WIDTH = 9.6
MARGIN = 0.25
_TITLE, _SUBTITLE, _KEY = 13.5, 9.5, 8
_SANS, _MONO = "DejaVu Sans", "DejaVu Sans Mono"


class Sheet:
    """A page with a heading on top and a key at the bottom, and room between them.

    figure: the matplotlib figure. page: axes over all of it, in inches, y downwards.
    top: where the room begins, in inches. bottom: where it ends.
    """

    def __init__(self, room: float, *, title="", subtitle="", key=()):
        _load_quietly()
        from matplotlib.figure import Figure

        inner = PAGE_WIDTH - 2 * MARGIN
        lines = wrapped(subtitle, inner, _SUBTITLE)
        rows = _key_rows(key, inner)
        self.top = 0.2 + (0.27 if title else 0) + 0.19 * len(lines)
        self.bottom = self.top + room
        self.height = self.bottom + 0.22 * len(rows) + 0.12
        self.figure = Figure((PAGE_WIDTH, self.height), facecolor=PAPER, layout="none")
        self.page = self.panel(0, 0, PAGE_WIDTH, self.height)
        y = 0.2
        if title:
            short = fitted(literal(title, 200), inner, _TITLE, bold=True)
            write(self.page, MARGIN, y + 0.03, short, size=_TITLE, bold=True)
            y += 0.27
        for line in lines:
            write(self.page, MARGIN, y, line, size=_SUBTITLE, color=MUTED)
            y += 0.19
        self._draw_key(rows)

    def panel(self, left, top, width, height, *, x=None, y=None):
        """Return new axes without frame; by default their units are inches, y down."""
        place = (left, self.height - top - height, width, height)
        sizes = (PAGE_WIDTH, self.height) * 2
        ax = self.figure.add_axes([a / b for a, b in zip(place, sizes, strict=True)])
        ax.set_axis_off()
        ax.set_xlim(*(x or (0, width)))
        ax.set_ylim(*(y or (height, 0)))
        return ax

    def _draw_key(self, rows):
        y = self.bottom + 0.1
        for row in rows:
            x = MARGIN
            for swatch, words, width in row:
                if swatch:
                    bars(self.page, [(x, y - 0.05, x + 0.24, y + 0.05)], **swatch)
                write(self.page, x + (0.32 if swatch else 0), y, words, size=_KEY, color=MUTED)
                x += width
            y += 0.22


def _key_rows(key, inner):
    rows, used = [], inner
    for swatch, words in key:
        width = width_of(words, _KEY) + (0.32 if swatch else 0) + 0.25
        if used + width - 0.25 > inner:
            rows.append([])
            used = 0
        rows[-1].append((swatch, words, width))
        used += width
    return rows


def literal(text, limit: int = 80) -> str:
    """Return `text` on one line, at most `limit` letters long, safe to draw and to write."""
    line = " ".join(str(text)[: 4 * limit].encode(errors="replace").decode().split())
    line = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in line)
    return line if len(line) <= limit else line[: limit - 1] + "…"


@lru_cache(maxsize=4096)
def width_of(text: str, size: float, bold: bool = False, mono: bool = False) -> float:
    """Return the width of `text` in inches, at `size` points."""
    _load_quietly()
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(_MONO if mono else _SANS, weight=_weight(bold), size=size)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        return text_to_path.get_text_width_height_descent(text, font, False)[0] / 72


def fitted(text: str, width: float, size: float, bold: bool = False) -> str:
    """Return `text`, cut with an ellipsis if it is wider than `width` inches."""
    if width_of(text, size, bold) <= width:
        return text
    while text and width_of(text + "…", size, bold) > width:
        text = text[:-1]
    return text.rstrip() + "…"


def wrapped(text: str, width: float, size: float, *, bold=False, most=20) -> list[str]:
    """Return `text` in at most `most` lines of `width` inches, broken between words."""
    lines = []
    for word in text.split():
        if lines and (len(lines) == most or width_of(f"{lines[-1]} {word}", size, bold) <= width):
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return [fitted(line, width, size, bold) for line in lines]


def write(ax, x, y, text, *, size=8, color=INK, bold=False, mono=False, align="left", on=None):
    """Write `text` with its middle at height y; a dollar sign is a dollar sign.

    `on`: the colour of a patch under the text, where it lies on something.
    """
    under = on and {"facecolor": on, "edgecolor": "none", "boxstyle": "round,pad=0.15"}
    return ax.text(
        x, y, text, fontsize=size, color=color, fontweight=_weight(bold),
        fontfamily=_MONO if mono else _SANS, horizontalalignment=align, fontstyle="normal",
        verticalalignment="center_baseline", parse_math=False, usetex=False, bbox=under or None,
        zorder=8,
    )  # fmt: skip


def bars(ax, boxes, color, *, edge=None, hatch=None, dashed=False, gid=None, zorder=3):
    """Draw boxes (left, top, right, bottom), all alike, as one artist."""
    from matplotlib.collections import PolyCollection

    corners = [((a, b), (c, b), (c, d), (a, d)) for a, b, c, d in boxes]
    hairline = 0.5 if len(corners) < 2000 else 0  # so that a bar below a pixel is still seen
    artist = PolyCollection(
        corners, facecolors=color, edgecolors=edge or color, linewidths=1 if edge else hairline,
        linestyles=[(0, (3, 2))] if dashed else "solid", zorder=zorder,
    )  # fmt: skip
    artist.set_hatch(hatch)
    artist.set_gid(gid)
    return ax.add_collection(artist, autolim=False)


def strokes(ax, lines, color=GRID, *, width=0.8, dashed=False, gid=None, zorder=1):
    """Draw straight lines (x0, y0, x1, y1), all alike, as one artist."""
    from matplotlib.collections import LineCollection

    artist = LineCollection(
        [((a, b), (c, d)) for a, b, c, d in lines], colors=color, linewidths=width,
        linestyles=[(0, (3, 2))] if dashed else "solid", zorder=zorder,
    )  # fmt: skip
    artist.set_gid(gid)
    artist.set_clip_on(False)
    return ax.add_collection(artist, autolim=False)


def arrow(ax, start, end, color):
    """Draw a thin arrow with a white rim, so that it is seen on top of bars."""
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.patheffects import Normal, Stroke

    artist = FancyArrowPatch(
        start, end, arrowstyle="-|>,head_length=3.2,head_width=1.5", color=color, linewidth=0.9,
        shrinkA=0, shrinkB=0, zorder=5, mutation_scale=1.4, clip_on=False,
    )  # fmt: skip
    artist.set_path_effects([Stroke(linewidth=2.2, foreground=PAPER), Normal()])
    artist.set_gid("arrow")
    return ax.add_patch(artist)


def pill(ax, box, edge, *, fill=PAPER, dashed=False):
    """Draw a rounded box (left, top, right, bottom), in axes whose units are inches."""
    from matplotlib.patches import FancyBboxPatch

    a, b, c, d = box
    artist = FancyBboxPatch(
        (a, b), c - a, d - b, boxstyle="round,pad=0,rounding_size=0.08", facecolor=fill,
        edgecolor=edge, linewidth=1.2, linestyle=(0, (3, 2)) if dashed else "solid", zorder=3,
    )  # fmt: skip
    artist.set_gid("pill")
    return ax.add_patch(artist)


def shape(ax, x, y, rank: int, *, size=6.0, marker=None, color=None):
    """Draw the marker of `rank`, or another one."""
    ax.plot(
        [x], [y], linestyle="none", marker=marker or rank_marker(rank), markersize=size,
        color=color or rank_color(rank), markeredgecolor=PAPER, markeredgewidth=0.4,
        clip_on=False, zorder=7, scalex=False, scaley=False,
    )  # fmt: skip


def _weight(bold):
    return "bold" if bold else "normal"


def _load_quietly():
    """Import matplotlib without its remarks on fonts and caches.

    They come through logging, on stderr, the first time on a machine; and nbgrader
    gives no points to a cell with a line on stderr.
    """
    logger = logging.getLogger("matplotlib")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        import matplotlib.font_manager  # noqa: F401
    finally:
        logger.setLevel(level)
