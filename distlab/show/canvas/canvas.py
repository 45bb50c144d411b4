"""The canvas of pictures, and the primitives that are drawn on it.

Primitives are kept as plain data, panel by panel: `matplotlib_page` makes an image or a
file of them, and `svg_page` the drawings in a notebook, one for each width of a page.
"""

from collections.abc import Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NamedTuple

from distlab.show.canvas.text import literal, width_of, wrapped
from distlab.show.canvas.theme import GRID, INK, MUTED, PAPER, rank_color, rank_marker

__all__ = [
    "MARGIN",
    "WIDTHS",
    "Canvas",
    "Mark",
    "PagePanel",
    "arrow",
    "bars",
    "curve",
    "inside",
    "is_narrow",
    "page_in_html",
    "page_width",
    "pill",
    "points",
    "shapes",
    "strokes",
    "underlay",
    "write",
]

WIDTHS = (
    9.8,
    8.4,
    6.7,
    4.5,
    2.97,
)  # inches: of a wide notebook's cell to that of a phone
MARGIN, _EDGE = 0.25, 0.17
_TITLE, _SUBTITLE, _KEY = 13.5, 9.5, 8.25
_MANY, _NARROW = 200, 5.2


class _PageSize(NamedTuple):
    """The width of a page, and its outer edge that is cut off, in inches.

    headed: True if a canvas draws its heading.
    """

    width: float
    edge: float
    headed: bool


_WIDE = _PageSize(WIDTHS[0], 0.0, True)
_page = ContextVar("page")


@contextmanager
def page_in_html(width: float):
    """Let canvases have this width in inches, with HTML for margins and heading."""
    token = _page.set(_PageSize(width + 2 * _EDGE, _EDGE, False))
    try:
        yield
    finally:
        _page.reset(token)


def page_width() -> float:
    """Return the width of the page in inches."""
    return _page.get(_WIDE).width


def is_narrow() -> bool:
    """Return True on a page on which names have no room beside what they name."""
    return page_width() < _NARROW


def inside(x: float, half: float) -> float:
    """Return the x of a centred text of width 2 * half, moved onto the page."""
    half += _EDGE + 0.02
    return min(max(x, half), page_width() - half)


@dataclass
class Mark:
    """One thing that is drawn: a kind of primitive, its coordinates, and its look.

    at: in the units of its panel. gid: its name in a matplotlib figure.
    """

    kind: str
    at: Any
    look: dict
    zorder: float
    gid: str | None = None


class PagePanel:
    """A part of the page with coordinates of its own, and its marks.

    box: left, top, width and height in inches. x, y: the coordinates of its left and
    right, and of its lower and upper edge. log: True for each logarithmic axis.
    """

    def __init__(self, box, x, y, log=(False, False)):
        self.box, self.x, self.y, self.log = box, x, y, log
        self.marks = []

    def add(self, kind, at, zorder, gid=None, **look):
        """Keep a mark, and return it."""
        self.marks.append(Mark(kind, at, look, zorder, gid))
        return self.marks[-1]


class Canvas:
    """A canvas with a heading on top and a legend at the bottom, and room between.

    page: a panel over all of it, in inches, y downwards. panels: all of them.
    top, bottom: upper and lower end of the room, in inches. edge: inches at the left
    and right, in which nothing is drawn.
    """

    def __init__(self, room: float, *, title="", subtitle="", key=()):
        self.width, self.edge, headed = _page.get(_WIDE)
        self.title, self.subtitle, self.alt = literal(title, 200), subtitle, ""
        inner = self.width - 2 * MARGIN
        titles = wrapped(self.title, inner, _TITLE, bold=True) if headed else []
        lines = wrapped(subtitle, inner, _SUBTITLE) if headed else []
        rows = _key_rows(key, inner)
        self.top = 0.2 * headed + 0.27 * len(titles) + 0.19 * len(lines)
        self.bottom = self.top + room
        self.height = self.bottom + 0.22 * len(rows) + 0.12
        self.panels = []
        self.page = self.panel(0, 0, self.width, self.height)
        y = 0.2
        for line in titles:
            write(self.page, MARGIN, y + 0.03, line, size=_TITLE, bold=True)
            y += 0.27
        for line in lines:
            write(self.page, MARGIN, y, line, size=_SUBTITLE, color=MUTED)
            y += 0.19
        self._draw_key(rows)

    def panel(self, left, top, width, height, *, x=None, y=None, log=(False, False)):
        """Return a new panel; by default its units are inches, y down."""
        box = left, top, width, height
        self.panels.append(PagePanel(box, x or (0, width), y or (height, 0), log))
        return self.panels[-1]

    def described(self, said: Iterable[str]) -> "Canvas":
        """Describe the picture by its title and these sentences; return the canvas."""
        title = [f"{self.title}:"] if self.title else []
        self.alt = " ".join([*title, *said])
        return self

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
    """Return the entries of a key (swatch, words), in rows that fit on the page.

    Words that are too long for a row go on in the next.
    """
    rows, used = [], inner
    for swatch, words in key:
        indent = 0.32 if swatch else 0
        first, *more = wrapped(words, inner - indent, _KEY) or [""]
        width = width_of(first, _KEY) + indent + 0.25
        if used + width - 0.25 > inner:
            rows.append([])
            used = 0
        rows[-1].append((swatch, first, width))
        used += width
        for line in more:
            rows.append([(None, line, width_of(line, _KEY) + 0.25)])
            used = rows[-1][0][2]
    return rows


def write(
    panel,
    x,
    y,
    text,
    *,
    size=8.25,
    color=INK,
    bold=False,
    mono=False,
    align="left",
    on=None,
):
    """Write `text` with its middle at height y, and return it.

    It is drawn as it stands: a dollar sign is a dollar sign.
    on: the colour that is behind it, if that is the same in a dark theme.
    """
    look = {"size": size, "color": color, "bold": bold, "mono": mono}
    return panel.add("text", (x, y, text), 8, align=align, on=on, under=None, **look)


def underlay(text, color=PAPER):
    """Draw a rim in the paper's or another colour around a text on something."""
    text.look["under"] = color


def bars(panel, boxes, color, *, gid=None, **look):
    """Draw boxes (left, top, right, bottom), all alike, as one mark; see `shapes`."""
    corners = [((a, b), (c, b), (c, d), (a, d)) for a, b, c, d in boxes]
    return shapes(panel, corners, color, gid=gid, **look)


def shapes(
    panel,
    corners,
    color,
    *,
    edge=None,
    hatch=None,
    dashed=False,
    gid,
    zorder=3,
    width=1,
):
    """Draw polygons, each by its corners, all alike, as one mark."""
    # A hairline keeps a bar visible that is narrower than a pixel. Where bars are many,
    # pixels show instead how much of their time is covered: no hairline, no snapping.
    many = len(corners) > _MANY
    look = {"color": color, "edge": edge or color, "hatch": hatch, "dashed": dashed}
    look |= {"width": width if edge else 0.5 * (not many), "snap": not many}
    return panel.add("shapes", corners, zorder, gid, **look)


def strokes(panel, lines, color=GRID, *, width=0.8, dashed=False, gid=None, zorder=1):
    """Draw straight lines (x0, y0, x1, y1), all alike, as one mark.

    color: of all lines, or a list with that of each.
    """
    look = {"color": color, "width": width, "dashed": dashed}
    return panel.add("strokes", lines, zorder, gid, **look)


def arrow(panel, start, end, color, *, width=0.9, gid="arrow"):
    """Draw an arrow with a white rim, so that it is seen on top of bars."""
    return panel.add("arrow", (start, end), 5, gid, color=color, width=width)


def pill(
    panel,
    box,
    edge,
    *,
    fill=PAPER,
    dashed=False,
    width=1.2,
    alpha=1,
    zorder=3,
    gid="pill",
):
    """Draw a rounded box (left, top, right, bottom), in a panel in inches."""
    look = {"edge": edge, "color": fill, "dashed": dashed, "width": width}
    return panel.add("pill", box, zorder, gid, alpha=alpha, **look)


def points(panel, xs, ys, number: int, *, size=6.0, marker=None, color=None, gid=None):
    """Draw points with the marker and colour of rank `number`, or with others."""
    look = {"marker": marker or rank_marker(number), "size": size}
    look["color"] = color or rank_color(number)
    return panel.add("points", (list(xs), list(ys)), 7, gid, **look)


def curve(panel, xs, ys, number: int, *, width=1.6, dashed=False, gid=None):
    """Draw a line through points in the colour of rank `number`."""
    look = {"color": rank_color(number), "width": width, "dashed": dashed}
    return panel.add("curve", (list(xs), list(ys)), 4, gid, **look)
