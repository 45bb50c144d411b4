"""The sheet that pictures are drawn on, and the few things that are drawn on it.

Everything that touches matplotlib's drawing is here, and matplotlib loads with the
first `Sheet`. No pyplot: no figure outlives its picture, and every property is given,
so that no setting of the learner's changes how a picture looks.
"""

from distlab.show.lettering import MONO, SANS, fitted, literal, load_quietly, width_of, wrapped
from distlab.show.theme import GRID, INK, MUTED, PAPER, rank_color, rank_marker

__all__ = ["MARGIN", "PAGE_WIDTH", "Sheet", "arrow", "bars", "pill", "shape", "strokes", "write"]

PAGE_WIDTH = 9.8
MARGIN = 0.25
_TITLE, _SUBTITLE, _KEY = 13.5, 9.5, 8


class Sheet:
    """A page with a heading on top and a key at the bottom, and room between them.

    figure: the matplotlib figure. page: axes over all of it, in inches, y downwards.
    top: where the room begins, in inches. bottom: where it ends.
    """

    def __init__(self, room: float, *, title="", subtitle="", key=()):
        load_quietly()
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


def write(ax, x, y, text, *, size=8, color=INK, bold=False, mono=False, align="left", on=None):
    """Write `text` with its middle at height y; a dollar sign is a dollar sign.

    `on`: the colour of a patch under the text, where it lies on something.
    """
    under = on and {"facecolor": on, "edgecolor": "none", "boxstyle": "round,pad=0.15"}
    return ax.text(
        x, y, text, fontsize=size, color=color, fontweight="bold" if bold else "normal",
        fontfamily=MONO if mono else SANS, horizontalalignment=align, fontstyle="normal",
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
