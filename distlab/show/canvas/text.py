"""Text in pictures: literal text, and its measured width.

Text is placed by its measured width, so that a picture knows before drawing whether
two labels would collide. Sizes are in points, widths in inches.
"""

import warnings
from functools import lru_cache

from distlab.errors import ExtraMissing

__all__ = ["MONO", "SANS", "fitted", "literal", "load_quietly", "width_of", "wrapped"]

SANS, MONO = "DejaVu Sans", "DejaVu Sans Mono"


def literal(text, limit: int = 80) -> str:
    """Return `text` on one line of at most `limit` letters that can all be printed."""
    line = " ".join(str(text)[: 4 * limit].encode(errors="replace").decode().split())
    line = "".join(letter if letter.isprintable() else "?" for letter in line)
    return line if len(line) <= limit else line[: limit - 1] + "…"


@lru_cache(maxsize=4096)
def width_of(text: str, size: float, bold: bool = False, mono: bool = False) -> float:
    """Return the width of `text` in inches, at `size` points."""
    load_quietly()
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    weight = "bold" if bold else "normal"
    family = MONO if mono else SANS
    font = FontProperties(family=family, weight=weight, size=size)
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


def wrapped(
    text: str, width: float, size: float, *, most: int = 20, bold: bool = False
) -> list[str]:
    """Return `text` in at most `most` lines of `width` inches, broken between words."""
    lines = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and (len(lines) == most or width_of(longer, size, bold) <= width):
            lines[-1] = longer
        else:
            lines.append(word)
    return [fitted(line, width, size, bold) for line in lines]


def load_quietly():
    """Import matplotlib without its log messages on fonts and caches.

    They appear on stderr, the first time on a machine; and nbgrader gives no points to
    a cell with a line on stderr.
    """
    import logging

    logger = logging.getLogger("matplotlib")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with ExtraMissing.named("a picture"):
            import matplotlib.font_manager  # noqa: F401
    finally:
        logger.setLevel(level)
