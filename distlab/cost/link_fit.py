"""Alpha and beta of a link, from measured messages."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from distlab.errors import InvalidArgument

__all__ = ["LinkFit", "fit_link"]


@dataclass(frozen=True)
class LinkFit:
    """A line fitted to measured messages: seconds = latency_s + bytes / bytes_per_s.

    latency_error_s, bytes_per_s_error: standard errors; the truth is within two of them
        in 19 of 20 cases, if the model holds and the samples are independent.
    fitted_latency_s: the line's seconds at zero bytes. Below 0 it cannot be true: then
        latency_s is 0, and the rate is that of the best line through 0.
    """

    latency_s: float
    bytes_per_s: float
    latency_error_s: float
    bytes_per_s_error: float
    fitted_latency_s: float

    @property
    def clipped(self) -> bool:
        """True if the fitted latency was below 0, and so was set to 0."""
        return self.fitted_latency_s < 0

    def seconds(self, message_bytes: int) -> float:
        """Return the time of one message by this line."""
        return self.latency_s + message_bytes / self.bytes_per_s


def fit_link(samples: Iterable[tuple[int, float]]) -> LinkFit:
    """Fit latency and rate to samples, each the bytes and the seconds of one message.

    Least squares of the relative errors: a sample's error is relative to its own time.
    Otherwise the errors of large messages, which may exceed a whole latency, would
    dominate the fitted latency.

    Raises: InvalidArgument for fewer than three samples, or of one size only, or with a
        number that is no size or time, or if time does not grow with size.
    """
    samples = [_checked(sample) for sample in samples]
    if len(samples) < 3:
        raise InvalidArgument(
            f"two unknowns and their errors need three samples or more: {len(samples)}."
        )
    if len({size for size, _ in samples}) < 2:
        raise InvalidArgument(
            "all samples have the same size, so latency and rate cannot be told apart. "
            "Measure short and long messages."
        )
    alpha, beta, alpha_error, beta_error = _weighted_line(samples)
    if alpha < 0:
        ratios = [(size / s, size**2 / s**2) for size, s in samples]
        beta = sum(r for r, _ in ratios) / sum(r for _, r in ratios)
    if not beta > 0:
        raise InvalidArgument(
            "the time of a message does not grow with its size in these samples, so "
            "they say nothing about the rate. Measure longer messages, more often."
        )
    return LinkFit(max(0.0, alpha), 1 / beta, alpha_error, beta_error / beta**2, alpha)


def _checked(sample):
    try:
        size, seconds = (float(number) for number in sample)
    except (TypeError, ValueError):
        raise InvalidArgument(f"a sample is (bytes, seconds), and got {sample!r}.")
    if not (0 <= size < math.inf and 0 < seconds < math.inf):
        raise InvalidArgument(
            f"a sample has a size from 0 up and a time above 0, and got {sample!r}."
        )
    return size, seconds


def _weighted_line(samples):
    """Return alpha, beta and their standard errors, each sample weighed by 1 / t**2."""
    weights = [1 / seconds**2 for _, seconds in samples]
    total = sum(weights)
    weighed = list(zip(weights, samples, strict=True))
    mean_size = sum(w * size for w, (size, _) in weighed) / total
    mean_s = sum(w * s for w, (_, s) in weighed) / total
    spread = sum(w * (size - mean_size) ** 2 for w, (size, _) in weighed)
    beta = sum(w * (size - mean_size) * s for w, (size, s) in weighed) / spread
    alpha = mean_s - beta * mean_size
    left = sum(w * (s - alpha - beta * size) ** 2 for w, (size, s) in weighed)
    variance = left / (len(samples) - 2)
    alpha_error = math.sqrt(variance * (1 / total + mean_size**2 / spread))
    return alpha, beta, alpha_error, math.sqrt(variance / spread)
