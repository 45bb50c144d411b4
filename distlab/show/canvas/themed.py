"""Figures as SVG that follow the page's theme and keep their words legible.

A figure's theme colours become CSS variables, so that it is dark in a dark notebook.
It may shrink with the page until its smallest words have 11 pixels; a page that is
narrower still scrolls it sideways, in a box of its own.
"""

import re
import warnings
from html import escape

from distlab.show import assets
from distlab.show.assets import style
from distlab.show.canvas.theme import DARK, PAPER

__all__ = ["themed"]

_LEAST_PX, _SCREEN_DPI = 11, 96
_NEAR = 10  # of 255: pixels are blended at edges
_BOX = ".distlab-picture"


def themed(figure, draw, alt: str, fallback: str) -> str:
    """Return a figure as self-contained HTML.

    draw: returns the figure as SVG. fallback: an image, for pages that show only images
    and words of a cell's output, as in a notebook that is not trusted.
    """
    import matplotlib

    kept = _on_color(figure)
    for text in kept:
        text.set_color(_nudged(text.get_color()))
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        drawn = draw().decode()
    for text in kept:
        text.set_color(_nudged(text.get_color()))
    svg = re.sub(r'<g id="[^"]*">', "<g>", drawn[drawn.index("<svg") :])
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"(\d\.\d\d)\d+", r"\1", svg)
    svg = re.sub(r"#[0-9a-fA-F]{6}\b", lambda m: _variable(m[0].upper()), svg)
    wide = figure.get_figwidth() * _SCREEN_DPI
    sizes = [float(size) for size in re.findall(r"\b([\d.]+)px", svg)]
    smallest = min(sizes, default=_LEAST_PX) * _SCREEN_DPI / 72
    least = wide * _LEAST_PX / smallest
    opening = (
        f'<svg role="img" aria-label="{escape(alt)}" style="display:block;width:100%;'
        f"min-width:{least:.0f}px;max-width:{max(wide, least):.0f}px;"
        'height:auto" '
    )
    svg = re.sub(r'<svg (?:width|height)="[^"]*"', "<svg", svg, count=1)
    svg = re.sub(r' (?:width|height)="[\d.]+pt"', "", svg, count=2)
    svg = svg.replace("<svg ", opening, 1)
    return f'{_style()}<div class="distlab-picture">{fallback}{svg}</div>'


def _variable(color):
    return f"var(--d{color[1:]})" if color in DARK else color


def _nudged(color):
    """Flip a colour's last bit, so that `_variable` skips it; twice restores it."""
    return color[:-1] + f"{int(color[-1], 16) ^ 1:X}"


def _style():
    light = {f"d{color[1:]}": color for color in DARK}
    dark = {f"d{color[1:]}": other for color, other in DARK.items()}
    box = f"overflow-x:auto;background:var(--d{PAPER[1:]});border-radius:8px"
    return style(
        assets.themed(_BOX, light, dark),
        f"{_BOX}{{{box};padding:6px}}{_BOX} img{{display:none}}",
    )


def _on_color(figure):
    """Return the texts on a background that keeps its colour in a dark theme."""
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    canvas = FigureCanvasAgg(figure)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # see `Picture`
        canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[:, :, :3].astype(int)
    papers = np.array([[int(c[at : at + 2], 16) for at in (1, 3, 5)] for c in DARK])
    tall, wide, _ = pixels.shape
    found = []
    for text in figure.findobj(Text):
        if not text.get_text() or not str(text.get_color()).startswith("#"):
            continue
        box = text.get_window_extent(canvas.get_renderer())
        y = int(min(max(tall - (box.y0 + box.y1) / 2, 0), tall - 1))
        sides = [int(min(max(x, 0), wide - 1)) for x in (box.x0 - 2, box.x1 + 2)]
        apart = np.abs(pixels[y, sides][:, None] - papers).max(axis=2).min(axis=1)
        if (apart > _NEAR).all():
            found.append(text)
    return found
