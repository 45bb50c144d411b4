"""Distributions of delays, in seconds.

Exponential(0.01)                   memoryless, 10 ms on average
Pareto(0.001, 3)                    1 ms at least, and a heavy tail
Mixture((0.9, Pareto(0.001, 3)), (0.1, Exponential(0.05)))
Recorded([0.0012, 0.0011, 0.0015])  any of the delays that were measured
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Any

from distlab.errors import InvalidArgument
from distlab.network.client import check_seconds
from distlab.units import readable_seconds

__all__ = [
    "DelayDistribution",
    "Exponential",
    "Mixture",
    "Pareto",
    "Recorded",
    "UniformDelay",
]


class DelayDistribution:
    """A distribution of delays. mean_s: the average.

    `_at` is the delay that is exceeded with probability u: of a uniform u > 0, a draw.
    """

    mean_s: float

    def draw(self, random: Random) -> float:
        """Draw one delay."""
        return self._at(1 - random.random(), math.log)

    def draws(self, generator: Any, size: Any) -> Any:
        """Draw an array of independent delays from a numpy Generator."""
        import numpy

        return self._at(1 - generator.random(size), numpy.log)


@dataclass(frozen=True)
class UniformDelay(DelayDistribution):
    """Delays from the shortest to the longest, all equally likely."""

    shortest_s: float
    longest_s: float

    def __post_init__(self):
        _check_order(self, "shortest_s", "longest_s")

    @property
    def mean_s(self) -> float:
        """Return the average delay."""
        return (self.shortest_s + self.longest_s) / 2

    def _at(self, u, log):
        return self.longest_s - (self.longest_s - self.shortest_s) * u


@dataclass(frozen=True)
class Exponential(DelayDistribution):
    """`least_s` and an exponentially distributed rest, together `mean_s` on average."""

    mean_s: float
    least_s: float = 0.0

    def __post_init__(self):
        _check_order(self, "least_s", "mean_s")

    def _at(self, u, log):
        return self.least_s - (self.mean_s - self.least_s) * log(u)


@dataclass(frozen=True)
class Pareto(DelayDistribution):
    """A heavy tail: a delay is above x with the probability (least_s / x) ** shape."""

    least_s: float
    shape: float

    def __post_init__(self):
        check_seconds(f"least_s of {self}", self.least_s)
        if not isinstance(self.shape, int | float) or not 1 < self.shape < math.inf:
            raise InvalidArgument(
                f"{self}: shape is a number above 1; with 1 or less the mean delay is "
                "infinite."
            )

    @property
    def mean_s(self) -> float:
        """Return the average delay."""
        return self.least_s * self.shape / (self.shape - 1)

    def _at(self, u, log):
        return self.least_s * u ** (-1 / self.shape)


@dataclass(frozen=True, repr=False)
class Recorded(DelayDistribution):
    """Delays that were measured, all equally likely."""

    samples: Iterable[float]

    def __post_init__(self):
        try:
            samples = tuple(map(float, self.samples))
        except (TypeError, ValueError):
            samples = ()
        if not samples:
            raise InvalidArgument(
                "Recorded takes at least one delay, such as Recorded([0.011, 0.012]), "
                f"and got {self.samples!r}."
            )
        for number, sample in enumerate(samples):
            check_seconds(f"sample {number} of Recorded", sample)
        object.__setattr__(self, "samples", samples)

    def __repr__(self) -> str:
        mean = readable_seconds(self.mean_s)
        return f"Recorded({len(self.samples):,} samples, {mean} on average)"

    @property
    def mean_s(self) -> float:
        """Return the average delay."""
        return sum(self.samples) / len(self.samples)

    def draw(self, random: Random) -> float:
        """Draw one of the samples."""
        return random.choice(self.samples)

    def draws(self, generator: Any, size: Any) -> Any:
        """Draw an array of samples."""
        return generator.choice(self.samples, size)


@dataclass(frozen=True, init=False, repr=False)
class Mixture(DelayDistribution):
    """Delays of several distributions, in proportion to their weights.

    parts: (weight, distribution) each; the weights may have any sum.
    """

    parts: tuple[tuple[float, DelayDistribution], ...]

    def __init__(self, *parts: tuple[float, DelayDistribution]):
        for part in parts or [None]:
            match part:
                case (int() | float() as weight, DelayDistribution()) if weight > 0:
                    continue
            raise InvalidArgument(
                "Mixture takes pairs of a weight above 0 and a distribution, such as "
                f"(0.9, Exponential(0.01)), and got {part!r}."
            )
        object.__setattr__(self, "parts", parts)

    def __repr__(self) -> str:
        return f"Mixture({', '.join(map(repr, self.parts))})"

    @property
    def mean_s(self) -> float:
        """Return the average delay."""
        weighted = sum(weight * part.mean_s for weight, part in self.parts)
        return weighted / sum(weight for weight, _ in self.parts)

    def draw(self, random: Random) -> float:
        """Draw one delay."""
        weights, parts = zip(*self.parts, strict=True)
        return random.choices(parts, weights)[0].draw(random)

    def draws(self, generator: Any, size: Any) -> Any:
        """Draw an array of delays."""
        weights, parts = zip(*self.parts, strict=True)
        chosen, below = generator.random(size) * sum(weights), 0.0
        delays = parts[0].draws(generator, size)
        for weight, part in zip(weights, parts[1:], strict=False):
            below += weight
            later = chosen >= below  # of this part, or of one after it, which redraws
            delays[later] = part.draws(generator, int(later.sum()))
        return delays


def _check_order(delays, low, high):
    for name in (low, high):
        check_seconds(f"{name} of {delays}", getattr(delays, name))
    if getattr(delays, low) > getattr(delays, high):
        raise InvalidArgument(f"{delays}: {low} is above {high}.")
