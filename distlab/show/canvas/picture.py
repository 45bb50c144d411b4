"""`Picture`: a drawing and its text alternative."""

import warnings
from collections.abc import Callable
from functools import cached_property

from distlab.errors import InvalidArgument
from distlab.show.canvas.canvas import WIDTHS, Canvas, page_in_html
from distlab.show.canvas.matplotlib_page import figure_of
from distlab.show.canvas.svg_page import html_of
from distlab.show.canvas.theme import PAPER

__all__ = ["Picture"]

_SCREEN_DPI = 96
_KINDS = ("png", "svg", "pdf")


class Picture:
    """A drawing at every width of a page, and its text alternative `alt`.

    Shows itself as the last line of a cell, in light and dark themes, and as its
    alternative text where there are no images.
    draw: returns the canvas, laid out for the width of the page.
    """

    def __init__(self, draw: Callable[[], Canvas]):
        self._draw = draw
        self._canvas = draw()
        self.alt = self._canvas.alt

    def __repr__(self):
        return self.alt

    @cached_property
    def figure(self):
        """The drawing as a matplotlib figure."""
        return figure_of(self._canvas)

    def canvases(self) -> list[Canvas]:
        """Return the canvas for each of `WIDTHS`, without its heading."""
        drawn = []
        for width in WIDTHS:
            with page_in_html(width):
                drawn.append(self._draw())
        return drawn

    def save(self, path) -> None:
        """Write the picture to a .png, .svg or .pdf file, described by `alt`.

        Raises: InvalidArgument for another suffix.
        """
        kind = str(path).lower().rpartition(".")[2]
        if kind not in _KINDS:
            raise InvalidArgument(
                f"a picture is saved as .png, .svg or .pdf, and got {str(path)!r}. "
                'For example: picture.save("timeline.png")'
            )
        data = self._drawn(kind)
        with open(path, "wb") as file:
            file.write(data)

    def _drawn(self, kind):
        """Return the file's bytes; PNG at twice the resolution of a usual screen."""
        from io import BytesIO

        described = "Subject" if kind == "pdf" else "Description"
        target = BytesIO()
        with warnings.catch_warnings():
            # A letter that the font lacks is drawn as a box. A warning on stderr would
            # cost the learner the cell's points (nbgrader).
            warnings.filterwarnings("ignore", message="Glyph .* missing")
            self.figure.savefig(
                target,
                format=kind,
                dpi=2 * _SCREEN_DPI,
                facecolor=PAPER,
                transparent=False,
                metadata={described: self.alt},
                **({"pil_kwargs": {"compress_level": 4}} if kind == "png" else {}),
            )
        return target.getvalue()

    def pixels(self) -> dict[str, str]:
        """Return the bundle of an image and the alternative text, without a page."""
        from base64 import b64encode

        data = b64encode(self._drawn("png")).decode()
        return {"image/png": data, "text/plain": self.alt}

    def _repr_mimebundle_(self, include=None, exclude=None):
        from html import escape

        bundle = self.pixels()
        image = (
            f'<img alt="{escape(self.alt)}" '
            f'src="data:image/png;base64,{bundle["image/png"]}" style="max-width:100%">'
        )
        return {"text/html": html_of(self.canvases(), self.alt, image), **bundle}
