"""The canvas of pictures, and the primitives that are drawn on it.

Everything that touches matplotlib's drawing is here, and matplotlib loads with the
first `Canvas`. No pyplot: no figure outlives its picture, and every property is given,
so that no setting of the learner's changes how a picture looks.
"""

from collections.abc import Iterable

from distlab.show.canvas.picture import Picture
from distlab.show.canvas.text import (
    MONO,
    SANS,
    fitted,
    literal,
    load_quietly,
    width_of,
    wrapped,
)
from distlab.show.canvas.theme import GRID, INK, MUTED, PAPER, rank_color, rank_marker

__all__ = ["MARGIN", "PAGE_WIDTH", "Canvas", "arrow", "bars", "curve", "pill"]
__all__ += ["points", "shapes", "strokes", "underlay", "write"]

PAGE_WIDTH = 9.8
MARGIN = 0.25
_TITLE, _SUBTITLE, _KEY = 13.5, 9.5, 8.25
_DASHES = (0, (3, 2))
_MANY = 200


class Canvas:
    """A canvas with a heading on top and a legend at the bottom, and room between.

    figure: the matplotlib figure. page: axes over all of it, in inches, y downwards.
    top, bottom: upper and lower end of the room, in inches.
    """

    def __init__(self, room: float, *, title="", subtitle="", key=()):
        load_quietly()
        from matplotlib.figure import Figure

        self._title = title
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
        wide, high = PAGE_WIDTH, self.height
        place = (left / wide, 1 - (top + height) / high, width / wide, height / high)
        ax = self.figure.add_axes(place)
        ax.set_axis_off()
        ax.set(xlim=x or (0, width), ylim=y or (height, 0))
        return ax

    def picture(self, said: Iterable[str]) -> Picture:
        """Return the picture, described by its title and these sentences."""
        title = [f"{literal(self._title)}:"] if self._title else []
        return Picture(self.figure, " ".join([*title, *said]))

    def _draw_key(self, rows):
        y = self.bottom + 0.1
        for row in rows:
            x = MARGIN
            for swatch, words, width in row:
                if swatch:
                    bars(self.page, [(x, y - 0.05, x + 0.24, y + 0.05)], **swatch)
                    x, width = x + 0.32, width - 0.32
                write(self.page, x, y, words, size=_KEY, color=MUTED)
                x += width
            y += 0.22


def _key_rows(key, inner):
    """Return the entries of a key (swatch, words), in rows that fit on the page."""
    rows, used = [], inner
    for swatch, words in key:
        width = width_of(words, _KEY) + (0.32 if swatch else 0) + 0.25
        if used + width - 0.25 > inner:
            rows.append([])
            used = 0
        rows[-1].append((swatch, words, width))
        used += width
    return rows


def write(
    ax, x, y, text, *, size=8.25, color=INK, bold=False, mono=False, align="left"
):
    """Write `text` with its middle at height y, and return it.

    It is drawn as it stands: a dollar sign is a dollar sign.
    """
    return ax.text(
        x,
        y,
        text,
        color=color,
        fontfamily=MONO if mono else SANS,
        fontsize=size,
        fontstyle="normal",
        fontweight="bold" if bold else "normal",
        horizontalalignment=align,
        parse_math=False,
        usetex=False,
        verticalalignment="center_baseline",
        zorder=8,
    )


def underlay(text):
    """Draw a box in the paper's colour behind a text that covers something."""
    text.set_bbox({"fc": PAPER, "ec": "none", "boxstyle": "round,pad=0.15"})


def bars(ax, boxes, color, *, gid=None, **look):
    """Draw boxes (left, top, right, bottom), all alike, as one artist; see `shapes`."""
    import numpy as np

    corners = np.array([((a, b), (c, b), (c, d), (a, d)) for a, b, c, d in boxes])
    return shapes(ax, corners, color, gid=gid, **look)


def shapes(
    ax, corners, color, *, edge=None, hatch=None, dashed=False, gid, zorder=3, width=1
):
    """Draw polygons, each by its corners, all alike, as one artist."""
    from matplotlib.collections import PolyCollection

    # A hairline keeps a bar visible that is narrower than a pixel. Where bars are many,
    # pixels show instead how much of their time is covered: no hairline, no snapping.
    many = len(corners) > _MANY
    artist = PolyCollection(
        corners,
        facecolors=color,
        edgecolors=edge or color,
        linewidths=width if edge else 0.5 * (not many),
        linestyles=[_DASHES] if dashed else "solid",
        hatch=hatch,
        snap=False if many else None,
        clip_on=False,
        zorder=zorder,
        gid=gid,
    )
    return ax.add_collection(artist, autolim=False)


def strokes(ax, lines, color=GRID, *, width=0.8, dashed=False, gid=None, zorder=1):
    """Draw straight lines (x0, y0, x1, y1), all alike, as one artist."""
    from matplotlib.collections import LineCollection

    artist = LineCollection(
        [((a, b), (c, d)) for a, b, c, d in lines],
        colors=color,
        linewidths=width,
        linestyles=[_DASHES] if dashed else "solid",
        clip_on=False,
        zorder=zorder,
        gid=gid,
    )
    return ax.add_collection(artist, autolim=False)


def arrow(ax, start, end, color, *, width=0.9, gid="arrow"):
    """Draw an arrow with a white rim, so that it is seen on top of bars."""
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.patheffects import Normal, Stroke

    head = "-|>,head_length=3.2,head_width=1.5"
    artist = FancyArrowPatch(start, end, arrowstyle=head, shrinkA=0, shrinkB=0)
    scale = 1.4 * width**0.5
    artist.set(color=color, linewidth=width, mutation_scale=scale, zorder=5)
    artist.set_path_effects([Stroke(linewidth=width + 1.3, foreground=PAPER), Normal()])
    artist.set(clip_on=False, gid=gid)
    return ax.add_artist(artist)


def pill(ax, box, edge, *, fill=PAPER, dashed=False):
    """Draw a rounded box (left, top, right, bottom), in axes in inches."""
    from matplotlib.patches import FancyBboxPatch

    a, b, c, d = box
    rounded = "round,pad=0,rounding_size=0.08"
    artist = FancyBboxPatch((a, b), c - a, d - b, boxstyle=rounded, gid="pill")
    artist.set(facecolor=fill, edgecolor=edge, linewidth=1.2, zorder=3, clip_on=False)
    artist.set_linestyle(_DASHES if dashed else "solid")
    return ax.add_artist(artist)


def points(ax, xs, ys, number: int, *, size=6.0, marker=None, color=None, gid=None):
    """Draw points with the marker and colour of rank `number`, or with others."""
    from matplotlib.lines import Line2D

    drawn = Line2D(xs, ys, linestyle="none", marker=marker or rank_marker(number))
    drawn.set(color=color or rank_color(number), markersize=size, gid=gid)
    drawn.set(markeredgecolor=PAPER, markeredgewidth=0.4, zorder=7)
    ax.add_artist(drawn).set_clip_on(False)


def curve(ax, xs, ys, number: int, *, width=1.6, dashed=False, gid=None):
    """Draw a line through points in the colour of rank `number`."""
    from matplotlib.lines import Line2D

    drawn = Line2D(xs, ys, linestyle=(0, (4, 2)) if dashed else "solid", marker="")
    drawn.set(color=rank_color(number), linewidth=width, zorder=4, gid=gid)
    ax.add_artist(drawn).set_clip_on(False)
