"""SVG of canvases, in the colours of the page's theme, every word at 11 pixels or more.

The theme's colours become CSS variables, so that a picture is dark in a dark notebook.
A canvas laid out for each of `WIDTHS` is there, and CSS shows the widest that the page
has room for: no script, and nothing is cut off.
"""

import math
import secrets
from html import escape

from distlab.show import assets
from distlab.show.assets import style
from distlab.show.canvas.canvas import WIDTHS
from distlab.show.canvas.scale import share
from distlab.show.canvas.theme import DARK, INK, MUTED, PAPER

__all__ = ["html_of"]

_PX, _PT = 96, 96 / 72  # pixels to an inch, and to a point
_BOX, _PADDING = ".distlab-picture", 6
_MOST_SCALED = 1.25
_HATCHES = {  # in a tile of 6 pixels
    "/": "M-1 1l2-2M0 6l6-6M5 7l2-2",
    "\\": "M-1 5l2 2M0 0l6 6M5-1l2 2",
    "x": "M0 6l6-6M0 0l6 6",
    "-": "M0 3h6",
    "|": "M3 0v6",
    ".": "M1 1h1v1h-1zM4 4h1v1h-1z",
}
_MARKERS = {  # in a box from -1 to 1
    "s": "M-1-1H1V1H-1z",
    "^": "M0-1L1 1H-1z",
    "D": "M0-1.3L1.3 0 0 1.3-1.3 0z",
    "v": "M0 1L1-1H-1z",
    ">": "M1 0L-1 1V-1z",
    "P": "M-.35-1H.35V-.35H1V.35H.35V1H-.35V.35H-1V-.35H-.35z",
    "X": "M0-.45L.5-1 1-.5.45 0 1 .5.5 1 0 .45-.5 1-1 .5-.45 0-1-.5-.5-1z",
}


def html_of(canvases, alt: str, fallback: str) -> str:
    """Return a picture as self-contained HTML.

    canvases: one for each of `WIDTHS`, all without their headings.
    fallback: an image, for pages that show only images and words of a cell's output,
    as in a notebook that is not trusted.
    """
    first = canvases[0]
    heading = f"<b>{escape(first.title)}</b>" * bool(first.title)
    heading += f"<p>{escape(first.subtitle)}</p>" * bool(first.subtitle)
    drawn = "".join(_SvgPage(canvas).svg(n) for n, canvas in enumerate(canvases))
    return (
        f'{_style()}<div class="distlab-picture">{heading}{fallback}'
        f'<div role="img" aria-label="{escape(alt)}">{drawn}</div></div>'
    )


def _style():
    light = {f"d{color[1:]}": color for color in DARK}
    dark = {f"d{color[1:]}": other for color, other in DARK.items()}
    rules = (
        f"{_BOX}{{container-type:inline-size;background:{_css(PAPER)};"
        f"border-radius:8px;padding:{_PADDING}px;color:{_css(INK)};"
        "font:13px/1.4 system-ui,sans-serif;overflow-x:auto}"
        f"{_BOX} img,{_BOX} svg{{display:none}}{_BOX} p{{margin:2px 0}}"
        f"{_BOX} b{{font-size:18px}}{_BOX} p{{color:{_css(MUTED)}}}"
        f"{_BOX} :is(b,p){{overflow-wrap:anywhere}}"
        f'{_BOX} text{{font-family:"DejaVu Sans",Verdana,sans-serif}}'
        f'{_BOX} .m{{font-family:"DejaVu Sans Mono",monospace}}'
        f"{_BOX} svg{{height:auto;width:100%}}"
        f"@supports not (container-type:inline-size){{{_BOX} .w0{{display:block}}}}"
    )
    above = math.inf
    for number, width in enumerate(WIDTHS):
        least = width * _PX
        ends = [f"(min-width:{least:.0f}px)"] * (width > WIDTHS[-1])
        ends += [f"(max-width:{above - 0.1:.1f}px)"] * bool(number)
        shown = f"display:block;max-width:{_MOST_SCALED * least:.0f}px"
        shown += f";min-width:{least:.0f}px" * (number == len(WIDTHS) - 1)
        rules += f"@container {' and '.join(ends)}{{{_BOX} .w{number}{{{shown}}}}}"
        above = least
    return style(assets.themed(_BOX, light, dark), rules)


def _css(color, on=None):
    """Return a colour in CSS; in the page's theme unless it is on one that stays."""
    if on not in (None, "none") and on not in DARK:
        return color
    return f"var(--d{color[1:]})" if color in DARK else color


def _number(pixels):
    return f"{pixels:.1f}".removesuffix(".0")


class _SvgPage:
    """One canvas as SVG; coordinates are pixels on the page."""

    def __init__(self, canvas):
        self.canvas, self.patterns = canvas, {}

    def svg(self, number):
        """Return the canvas as the drawing for `WIDTHS[number]`."""
        edge, high = self.canvas.edge, self.canvas.height
        box = edge, 0, self.canvas.width - 2 * edge, high
        box = " ".join(_number(_PX * inches) for inches in box)
        self.name = f"h{secrets.token_hex(3)}"  # pages join outputs of many runs
        drawn = [
            getattr(self, f"_{mark.kind}")(panel, mark)
            for panel in self.canvas.panels
            for mark in sorted(panel.marks, key=lambda mark: mark.zorder)
        ]
        patterns = "".join(drawn for _, drawn in self.patterns.values())
        return (
            f'<svg class="w{number}" viewBox="{box}" aria-hidden="true">'
            f"{patterns}{''.join(drawn)}</svg>"
        )

    def _at(self, panel, x, y):
        """Return a place of a panel in pixels."""
        left, top, width, height = panel.box
        across, up = (
            share(value, *ends, log=log)
            for value, ends, log in zip(
                (x, y), (panel.x, panel.y), panel.log, strict=True
            )
        )
        return _PX * (left + across * width), _PX * (top + (1 - up) * height)

    def _way(self, panel, corners):
        spots = (self._at(panel, *corner) for corner in corners)
        return "M" + "L".join(f"{_number(x)} {_number(y)}" for x, y in spots)

    def _text(self, panel, mark):
        (x, y, words), look = mark.at, mark.look
        if not words:
            return ""
        x, y = self._at(panel, x, y)
        size = look["size"] * _PT
        anchor = {"center": "middle", "right": "end"}.get(look["align"], "")
        under = look["under"]
        parts = [
            f'x="{_number(x)}" y="{_number(y + 0.36 * size)}"',
            f'font-size="{_number(size)}"',
            f'fill="{_css(look["color"], look["on"])}"',
            f'text-anchor="{anchor}"' * bool(anchor),
            'font-weight="bold"' * look["bold"],
            'class="m"' * look["mono"],
            f'stroke="{_css(under or "", look["on"])}" stroke-width="4" '
            'stroke-linejoin="round" paint-order="stroke"' * bool(under),
        ]
        return f"<text {' '.join(filter(None, parts))}>{escape(words)}</text>"

    def _shapes(self, panel, mark):
        look = mark.look
        way = "".join(f"{self._way(panel, corners)}Z" for corners in mark.at)
        fill = self._filled(look) if look["hatch"] else _css(look["color"])
        return f'<path d="{way}" fill="{fill}"{_edge(look)}/>'

    def _filled(self, look):
        """Return the fill of a hatching, and keep its pattern."""
        sign, own = look["hatch"][0], (look["hatch"][0], look["color"], look["edge"])
        if own not in self.patterns:
            name = f"{self.name}-{len(self.patterns)}"
            lines = 'fill="none" ' if sign != "." else f'fill="{_css(look["edge"])}" '
            color = _css(look["color"])
            drawn = (
                f'<pattern id="{name}" width="6" height="6" '
                'patternUnits="userSpaceOnUse">'
                f'<path d="M0 0h6v6h-6z" fill="{color}"/><path d="{_HATCHES[sign]}" '
                f'{lines}stroke="{_css(look["edge"])}" stroke-width=".9"/></pattern>'
            )
            self.patterns[own] = name, drawn
        return f"url(#{self.patterns[own][0]})"

    def _strokes(self, panel, mark):
        colors = mark.look["color"]
        if isinstance(colors, str):
            colors = [colors] * len(mark.at)
        ways = {}
        for (a, b, c, d), color in zip(mark.at, colors, strict=True):
            way = self._way(panel, ((a, b), (c, d)))
            ways[color] = ways.get(color, "") + way
        return "".join(
            f'<path d="{way}" fill="none"{_edge(mark.look | {"edge": color})}/>'
            for color, way in ways.items()
        )

    def _arrow(self, panel, mark):
        (x0, y0), (x1, y1) = (self._at(panel, *end) for end in mark.at)
        width = mark.look["width"]
        long = math.hypot(x1 - x0, y1 - y0) or 1.0
        ahead, aside = 4.5 * _PT * width**0.5, 2.1 * _PT * width**0.5
        dx, dy = (x1 - x0) / long, (y1 - y0) / long
        bx, by = x1 - ahead * dx, y1 - ahead * dy
        head = (
            (x1, y1),
            (bx - aside * dy, by + aside * dx),
            (bx + aside * dy, by - aside * dx),
        )
        tip = "L".join(f"{_number(x)} {_number(y)}" for x, y in head)
        line = f"M{_number(x0)} {_number(y0)}L{_number(bx)} {_number(by)}"
        color, way = mark.look["color"], f"{line}M{tip}Z"
        rim = _edge({"edge": PAPER, "width": width + 1.3})
        own = _edge({"edge": color, "width": width})
        return (
            f'<path d="{way}" fill="none"{rim}/>'
            f'<path d="{way}" fill="{_css(color)}"{own}/>'
        )

    def _pill(self, panel, mark):
        a, b, c, d = mark.at
        (x, y), (u, v) = self._at(panel, a, b), self._at(panel, c, d)
        see = f' opacity="{mark.look["alpha"]}"' * (mark.look["alpha"] != 1)
        return (
            f'<rect x="{_number(x)}" y="{_number(y)}" width="{_number(u - x)}" '
            f'height="{_number(v - y)}" rx="7.7" fill="{_css(mark.look["color"])}"'
            f"{see}{_edge(mark.look)}/>"
        )

    def _points(self, panel, mark):
        look, drawn = mark.look, ""
        color, half = _css(look["color"]), look["size"] * _PT / 2
        for x, y in zip(*mark.at, strict=True):
            x, y = map(_number, self._at(panel, x, y))
            rim = f'fill="{color}"{_edge({"edge": PAPER, "width": 0.4})}'
            if look["marker"] == "o":
                drawn += f'<circle cx="{x}" cy="{y}" r="{_number(half)}" {rim}/>'
            else:
                way = _MARKERS[look["marker"]]
                moved = f"translate({x} {y}) scale({half:.2f})"
                drawn += f'<path d="{way}" transform="{moved}" {rim} {_UNSCALED}/>'
        return drawn

    def _curve(self, panel, mark):
        way = self._way(panel, zip(*mark.at, strict=True))
        look = mark.look | {"edge": mark.look["color"]}
        return f'<path d="{way}" fill="none" stroke-linejoin="round"{_edge(look)}/>'


_UNSCALED = 'vector-effect="non-scaling-stroke"'


def _edge(look):
    """Return the attributes of a line; "" without one."""
    width, color = look["width"] * _PT, look["edge"]
    if not width or color == "none":
        return ""
    dashes = f' stroke-dasharray="{3 * width:.1f} {2 * width:.1f}"'
    dashes *= look.get("dashed", False)
    return f' stroke="{_css(color)}" stroke-width="{width:.2g}"{dashes}'
