"""Axes: round numbers for ticks, and the position of a number along an axis.

`Ruler` is a horizontal axis under bars, with its grid.
"""

import math

from distlab.show.canvas.canvas import inside, strokes, write
from distlab.show.canvas.text import width_of
from distlab.show.canvas.theme import MUTED

__all__ = ["Ruler", "Scale", "readable_number", "round_numbers", "share"]

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def round_numbers(low: float, high: float, about: int) -> list[float]:
    """Return roughly `about` numbers from low to high, steps of 1, 2 or 5 times 10ⁿ."""
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * t for t in (1, 2, 5, 10) if power * t >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{number * step:.12g}") for number in range(first, last + 1)]


def readable_number(number: float) -> str:
    """Return a number as people write it: 65,536, 0.25, 10⁻⁴, 1.3×10¹²."""
    if number == int(number) and abs(number) < 1e9:
        return f"{int(number):,}"
    if 1e-3 <= abs(number) < 1e5:
        return f"{number:.4g}"
    mantissa, power = f"{number:.3e}".split("e")
    mantissa = mantissa.rstrip("0").rstrip(".")
    power = str(int(power)).translate(_RAISED)
    return f"10{power}" if mantissa == "1" else f"{mantissa}×10{power}"


def share(number: float, low: float, high: float, *, log: bool) -> float:
    """Return the position of a number between two others, from 0 to 1."""
    if log:
        return math.log(number / low) / math.log(high / low)
    return (number - low) / (high - low)


class Scale:
    """One axis of measured numbers.

    low, high: its ends. log: True for a logarithmic axis.
    """

    def __init__(self, numbers, *, log: bool, from_zero: bool = False):
        self.log = log
        low, high = min(numbers), max(numbers)
        if log:
            reach = (high / low) ** 0.04 if high > low else 2.0
            self.low, self.high = low / reach, high * reach
        else:
            pad = 0.04 * (high - low) or abs(high) or 1.0
            self.low, self.high = low - pad, high + pad
            if from_zero and low >= 0:
                self.low = 0.0

    def share(self, number: float) -> float:
        """Return the position of a number along the axis, from 0 to 1."""
        return share(number, self.low, self.high, log=self.log)

    def ticks(self, about: int) -> list[float]:
        """Return round numbers between the ends."""
        if not self.log:
            return round_numbers(self.low, self.high, about)
        first = math.floor(math.log10(self.low))
        powers = range(first, math.ceil(math.log10(self.high)) + 1)
        for times in ((1,), (1, 3), (1, 2, 5), (1, 2, 3, 4, 5, 6, 8)):
            numbers = [float(f"{t}e{power}") for power in powers for t in times]
            numbers = [n for n in numbers if self.low <= n <= self.high]
            if len(numbers) >= 4:
                break
        return numbers[:: 1 + len(numbers) // (2 * about)]


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
            middle = inside(x, half)
            if middle - half > taken:
                strokes(page, [(x, bottom, x, bottom + 0.05)], MUTED)
                how = {"size": _SIZE, "color": MUTED, "align": "center"}
                write(page, middle, bottom + 0.15, words, **how)
                taken = middle + half + _APART
        strokes(page, [(self.left, bottom, self.right, bottom)], MUTED)
