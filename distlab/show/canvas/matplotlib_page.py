"""Matplotlib figures of a canvas, for images and files.

No pyplot: no figure outlives its picture, and every property is given, so that no
setting of the learner's changes how a picture looks.
"""

from distlab.show.canvas.text import MONO, SANS, load_quietly
from distlab.show.canvas.theme import PAPER

__all__ = ["figure_of"]

_DASHES = (0, (3, 2))


def figure_of(canvas):
    """Return a canvas as a matplotlib figure; a panel is axes without a frame."""
    load_quietly()
    from matplotlib.figure import Figure

    wide, high = canvas.width, canvas.height
    figure = Figure((wide, high), facecolor=PAPER, layout="none")
    for panel in canvas.panels:
        left, top, width, height = panel.box
        place = (left / wide, 1 - (top + height) / high, width / wide, height / high)
        ax = figure.add_axes(place)
        ax.set_axis_off()
        ax.set_xscale("log" if panel.log[0] else "linear")
        ax.set_yscale("log" if panel.log[1] else "linear")
        ax.set(xlim=panel.x, ylim=panel.y)
        for mark in panel.marks:
            _DRAW[mark.kind](ax, mark)
    return figure


def _text(ax, mark):
    (x, y, words), look = mark.at, mark.look
    drawn = ax.text(
        x,
        y,
        words,
        color=look["color"],
        fontfamily=MONO if look["mono"] else SANS,
        fontsize=look["size"],
        fontstyle="normal",
        fontweight="bold" if look["bold"] else "normal",
        horizontalalignment=look["align"],
        parse_math=False,
        usetex=False,
        verticalalignment="center_baseline",
        zorder=mark.zorder,
    )
    if look["under"]:
        box = {"fc": look["under"], "ec": "none", "boxstyle": "round,pad=0.1"}
        drawn.set_bbox(box)


def _shapes(ax, mark):
    from matplotlib.collections import PolyCollection

    look = mark.look
    artist = PolyCollection(
        mark.at,
        facecolors=look["color"],
        edgecolors=look["edge"],
        linewidths=look["width"],
        linestyles=[_DASHES] if look["dashed"] else "solid",
        hatch=look["hatch"],
        snap=None if look["snap"] else False,
        clip_on=False,
        zorder=mark.zorder,
        gid=mark.gid,
    )
    ax.add_collection(artist, autolim=False)


def _strokes(ax, mark):
    from matplotlib.collections import LineCollection

    artist = LineCollection(
        [((a, b), (c, d)) for a, b, c, d in mark.at],
        colors=mark.look["color"],
        linewidths=mark.look["width"],
        linestyles=[_DASHES] if mark.look["dashed"] else "solid",
        clip_on=False,
        zorder=mark.zorder,
        gid=mark.gid,
    )
    ax.add_collection(artist, autolim=False)


def _arrow(ax, mark):
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.patheffects import Normal, Stroke

    head, width = "-|>,head_length=3.2,head_width=1.5", mark.look["width"]
    artist = FancyArrowPatch(*mark.at, arrowstyle=head, shrinkA=0, shrinkB=0)
    scale = 1.4 * width**0.5
    artist.set(color=mark.look["color"], linewidth=width, mutation_scale=scale)
    artist.set_path_effects([Stroke(linewidth=width + 1.3, foreground=PAPER), Normal()])
    artist.set(clip_on=False, gid=mark.gid, zorder=mark.zorder)
    ax.add_artist(artist)


def _pill(ax, mark):
    from matplotlib.patches import FancyBboxPatch

    (a, b, c, d), look = mark.at, mark.look
    rounded = "round,pad=0,rounding_size=0.08"
    artist = FancyBboxPatch((a, b), c - a, d - b, boxstyle=rounded, gid=mark.gid)
    artist.set(facecolor=look["color"], edgecolor=look["edge"], alpha=look["alpha"])
    artist.set(linewidth=look["width"], zorder=mark.zorder, clip_on=False)
    artist.set_linestyle(_DASHES if look["dashed"] else "solid")
    ax.add_artist(artist)


def _points(ax, mark):
    from matplotlib.lines import Line2D

    look = mark.look
    drawn = Line2D(*mark.at, linestyle="none", marker=look["marker"])
    drawn.set(color=look["color"], markersize=look["size"], gid=mark.gid)
    drawn.set(markeredgecolor=PAPER, markeredgewidth=0.4, zorder=mark.zorder)
    ax.add_artist(drawn).set_clip_on(False)


def _curve(ax, mark):
    from matplotlib.lines import Line2D

    look = mark.look
    style = (0, (4, 2)) if look["dashed"] else "solid"
    drawn = Line2D(*mark.at, linestyle=style, marker="")
    drawn.set(color=look["color"], linewidth=look["width"])
    drawn.set(zorder=mark.zorder, gid=mark.gid)
    ax.add_artist(drawn).set_clip_on(False)


_DRAW = {
    "text": _text,
    "shapes": _shapes,
    "strokes": _strokes,
    "arrow": _arrow,
    "pill": _pill,
    "points": _points,
    "curve": _curve,
}
