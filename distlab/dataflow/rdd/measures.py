"""What RDDs of numbers can do besides: sums, means, and how they are spread."""

import bisect
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from math import isinf, isnan

from distlab.dataflow.rdd.statistics import StatCounter

__all__ = ["Measures"]


class Measures:
    """The part of `RDD` that is for numbers."""

    def sum(self) -> float:
        """Return the sum of the numbers."""
        return sum(self._each("sum", sum))

    def max(self, key: Callable | None = None) -> object:
        """Return the largest record, by key(record) if that is given."""
        return self._extreme("max", partial(max, key=key))

    def min(self, key: Callable | None = None) -> object:
        """Return the smallest record, by key(record) if that is given."""
        return self._extreme("min", partial(min, key=key))

    def _extreme(self, operation, choose):
        return self._reduced(operation, partial(_some, choose), choose)

    def stats(self) -> StatCounter:
        """Return count, mean, variance, least and largest of the numbers."""
        return self._stats("stats")

    def _stats(self, operation):
        return self._reduced(operation, _counted, StatCounter.mergeStats)

    def mean(self) -> float:
        """Return the mean of the numbers."""
        return self._stats("mean").mean()

    def variance(self) -> float:
        """Return their variance."""
        return self._stats("variance").variance()

    def stdev(self) -> float:
        """Return their standard deviation."""
        return self._stats("stdev").stdev()

    def sampleVariance(self) -> float:
        """Return the variance of what they are a sample of."""
        return self._stats("sampleVariance").sampleVariance()

    def sampleStdev(self) -> float:
        """Return the standard deviation of what they are a sample of."""
        return self._stats("sampleStdev").sampleStdev()

    def histogram(self, buckets: int | Sequence) -> tuple[list, list[int]]:
        """Return the bounds of buckets, and how many records are in each.

        buckets: how many, all equally wide, or their bounds, ascending. The last bound
        belongs to the last bucket.
        """
        if isinstance(buckets, int):
            return self._even_histogram(buckets)
        if not isinstance(buckets, list | tuple):
            raise TypeError(f"buckets is a number or a list, and got {buckets!r}.")
        _check_bounds(buckets)
        width = None
        try:
            steps = [high - low for low, high in pairwise(buckets)]
        except TypeError:
            steps = []
        if steps and max(steps) - min(steps) < 1e-10:
            width = (buckets[-1] - buckets[0]) / (len(buckets) - 1)
        return buckets, self._in_buckets(buckets, width)

    def _even_histogram(self, count):
        if count < 1:
            raise ValueError(f"buckets is at least 1, and got {count!r}.")
        comparable = self._piped("histogram", _comparable)
        try:
            ranges = comparable._each("histogram", _range)
            least, most = _together([each for each in ranges if each])
        except ValueError:
            raise ValueError("an empty RDD has no range to make buckets of.") from None
        if least == most or count == 1:
            return [least, most], [comparable.count()]
        try:
            width = (most - least) / count
        except TypeError:
            raise TypeError(
                f"buckets of equal width need numbers, and {least!r} is none: give "
                "their bounds."
            ) from None
        if isinf(width):
            raise ValueError("the range of the numbers is infinite.")
        if int(width) * count == most - least:
            width = int(width)
        else:
            width = (most - least) * 1.0 / count
        bounds = [number * width + least for number in range(count)] + [most]
        return bounds, self._in_buckets(bounds, width)

    def _in_buckets(self, bounds, width):
        found = self._each("histogram", partial(_fill, bounds, width))
        return [sum(counts) for counts in zip(*found, strict=True)] if found else []


def _some(choose, records):
    for record in records:
        largest = record
        for other in records:
            largest = choose(largest, other)
        return [largest]
    return []


def _counted(records):
    return [StatCounter(records)]


def _check_bounds(bounds):
    if len(bounds) < 2:
        raise ValueError("buckets has at least two bounds.")
    if any(_missing(bound) for bound in bounds):
        raise ValueError("a bound of a bucket is neither None nor nan.")
    if sorted(bounds) != list(bounds):
        raise ValueError("the bounds of buckets ascend.")
    if len(set(bounds)) != len(bounds):
        raise ValueError("the bounds of buckets differ from each other.")


def _missing(value):
    return value is None or (isinstance(value, float) and isnan(value))


def _comparable(partition, records):
    return (record for record in records if not _missing(record))


def _range(records):
    for record in records:
        least = most = record
        for other in records:
            least, most = min(least, other), max(most, other)
        return least, most
    return None


def _together(ranges):
    lows, highs = zip(*ranges, strict=True)
    return min(lows), max(highs)


def _fill(bounds, width, records):
    """Return how many records are in each bucket."""
    counts, least, most = [0] * len(bounds), bounds[0], bounds[-1]
    for record in records:
        if _missing(record) or record > most or record < least:
            continue
        if width is None:
            counts[bisect.bisect_right(bounds, record) - 1] += 1
        else:
            counts[int((record - least) / width)] += 1
    last = counts.pop()
    counts[-1] += last
    return counts
