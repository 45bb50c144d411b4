"""Count, mean, variance, least and largest, of numbers seen one by one, and merged.

Source: Chan, Golub and LeVeque, "Updating Formulae and a Pairwise Algorithm for
Computing Sample Variances" (1979).
"""

import copy
import math
from collections.abc import Iterable

__all__ = ["StatCounter"]


class StatCounter:
    """Statistics of the numbers merged into it."""

    def __init__(self, values: Iterable | None = None):
        self.n = 0
        self.mu = 0.0
        self.m2 = 0.0  # the sum of squared distances from the mean
        self.maxValue = float("-inf")
        self.minValue = float("inf")
        for value in values or ():
            self.merge(value)

    def merge(self, value: float) -> "StatCounter":
        """Take in a number."""
        delta = value - self.mu
        self.n += 1
        self.mu += delta / self.n
        self.m2 += delta * (value - self.mu)
        self.maxValue = _largest(self.maxValue, value)
        self.minValue = _least(self.minValue, value)
        return self

    def mergeStats(self, other: "StatCounter") -> "StatCounter":
        """Take in the numbers of another one."""
        if not isinstance(other, StatCounter):
            raise TypeError(f"mergeStats takes a StatCounter, and got {other!r}.")
        if other is self:
            other = self.copy()
        if self.n == 0:
            self.__dict__.update(other.__dict__)
        elif other.n != 0:
            delta, total = other.mu - self.mu, self.n + other.n
            if other.n * 10 < self.n:
                self.mu = self.mu + delta * other.n / total
            elif self.n * 10 < other.n:
                self.mu = other.mu - delta * self.n / total
            else:
                self.mu = (self.mu * self.n + other.mu * other.n) / total
            self.m2 += other.m2 + delta * delta * self.n * other.n / total
            self.n = total
            self.maxValue = _largest(self.maxValue, other.maxValue)
            self.minValue = _least(self.minValue, other.minValue)
        return self

    def copy(self) -> "StatCounter":
        """Return a copy."""
        return copy.deepcopy(self)

    def count(self) -> int:
        """Return how many numbers there were."""
        return int(self.n)

    def mean(self) -> float:
        """Return their mean."""
        return self.mu

    def sum(self) -> float:
        """Return their sum."""
        return self.n * self.mu

    def min(self) -> float:
        """Return the least."""
        return self.minValue

    def max(self) -> float:
        """Return the largest."""
        return self.maxValue

    def variance(self) -> float:
        """Return their variance."""
        return self.m2 / self.n if self.n else float("nan")

    def sampleVariance(self) -> float:
        """Return the variance of what they are a sample of."""
        return self.m2 / (self.n - 1) if self.n > 1 else float("nan")

    def stdev(self) -> float:
        """Return their standard deviation."""
        return _root(self.variance())

    def sampleStdev(self) -> float:
        """Return the standard deviation of what they are a sample of."""
        return _root(self.sampleVariance())

    def asDict(self, sample: bool = False) -> dict:
        """Return all of them; as in PySpark, `sample` means not of a sample."""
        return {
            "count": self.count(),
            "mean": self.mean(),
            "sum": self.sum(),
            "min": self.min(),
            "max": self.max(),
            "stdev": self.stdev() if sample else self.sampleStdev(),
            "variance": self.variance() if sample else self.sampleVariance(),
        }

    def __repr__(self):
        return (
            f"(count: {self.count()}, mean: {self.mean()}, stdev: {self.stdev()}, "
            f"max: {self.max()}, min: {self.min()})"
        )


def _largest(a, b):
    return _by_element("maximum", max, a, b)


def _least(a, b):
    return _by_element("minimum", min, a, b)


def _by_element(name, plain, a, b):
    """Compare numbers, or arrays number by number."""
    for each in (a, b):
        if hasattr(each, "shape"):
            import numpy

            return getattr(numpy, name)(a, b)
    return float(plain(a, b))


def _root(value):
    return value**0.5 if hasattr(value, "shape") else math.sqrt(value)
