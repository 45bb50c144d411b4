"""`Ruler`: a horizontal axis under bars, with its grid."""

from distlab.show.canvas.canvas import strokes, write
from distlab.show.canvas.scale import Scale
from distlab.show.canvas.text import width_of
from distlab.show.canvas.theme import MUTED

__all__ = ["Ruler"]

_SIZE, _APART = 8.25, 0.15


class Ruler:
    """A scale between two x on the page, in inches.

    words: formats the number under a tick. whole: True for ticks at integers only.
    """

    def __init__(self, scale: Scale, ends: tuple, words, *, whole: bool = False):
        self.scale, self.words = scale, words
        self.left, self.right = ends
        self.ticks = [n for n in scale.ticks(5) if not whole or n == int(n)]

    def inch(self, number: float) -> float:
        """Return the x of a number on the page, in inches."""
        return self.left + self.scale.share(number) * (self.right - self.left)

    def draw(self, page, top: float, bottom: float) -> None:
        """Draw the grid between two heights, and the numbers that have room below."""
        taken = self.left - 1
        for number in self.ticks:
            x, words = self.inch(number), self.words(number)
            strokes(page, [(x, top, x, bottom)], zorder=0)
            half = width_of(words, _SIZE) / 2
            if x - half > taken:
                strokes(page, [(x, bottom, x, bottom + 0.05)], MUTED)
                write(
                    page,
                    x,
                    bottom + 0.15,
                    words,
                    size=_SIZE,
                    color=MUTED,
                    align="center",
                )
                taken = x + half + _APART
        strokes(page, [(self.left, bottom, self.right, bottom)], MUTED)
