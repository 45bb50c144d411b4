"""Records chosen by chance: the same ones for the same seed, as in PySpark.

Every partition has a generator of its own, whose seed is made of the given seed and the
partition's number, so that no partition has to know of another.
"""

import math
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise

__all__ = ["between", "fraction_for", "ranges", "sampler", "stratified"]

_WARM_UP = 10
_SMALL = 20


def sampler(replace: bool, fraction: float, seed: int | None) -> Callable:
    """Return what chooses records, as compute(partition, iterator)."""
    return partial(
        _several if replace else between, *_how(replace, fraction), _any(seed)
    )


def _how(replace, fraction):
    return (fraction,) if replace else (-1.0, fraction)


def _any(seed):
    return random.randint(0, sys.maxsize) if seed is None else seed


def _generator(seed, partition):
    made = random.Random(seed ^ partition)
    for _ in range(_WARM_UP):
        made.randint(0, 1)
    return made


def between(
    low: float, high: float, seed: int, partition: int, records: Iterator
) -> Iterator:
    """Yield the records whose random number is from `low` to before `high`."""
    draw = _generator(seed, partition).random
    return (record for record in records if low <= draw() < high)


def _several(mean, seed, partition, records):
    """Yield each record as often as a Poisson variable says."""
    chance = _generator(seed, partition)
    for record in records:
        for _ in range(_poisson(mean, chance)):
            yield record


def _poisson(mean, chance):
    """Count the events of one unit of time, `mean` of which are to be expected."""
    count = 0
    if mean < _SMALL:  # a product of uniform numbers, until it is below e ** -mean
        least, product = math.exp(-mean), chance.random()
        while product > least:
            count += 1
            product *= chance.random()
    else:  # a sum of waiting times
        passed = chance.expovariate(mean)
        while passed < 1.0:
            count += 1
            passed += chance.expovariate(mean)
    return count


def stratified(replace: bool, fractions: dict, seed: int | None) -> Callable:
    """Return what chooses pairs, each key with a fraction of its own."""
    return partial(_by_key, replace, fractions, _any(seed))


def _by_key(replace, fractions, seed, partition, records):
    chance = _generator(seed, partition)
    for key, value in records:
        fraction = fractions[key]
        times = _poisson(fraction, chance) if replace else chance.random() < fraction
        for _ in range(times):
            yield key, value


def ranges(
    weights: Sequence[float], seed: int | None
) -> tuple[list[tuple[float, float]], int]:
    """Return for each weight its part of the numbers from 0 to 1, and a seed."""
    if not all(weight >= 0 for weight in weights):
        raise ValueError(f"weights are not negative, and got {weights!r}.")
    total = float(sum(weights))
    if not total > 0:
        raise ValueError("the sum of weights has to be positive.")
    bounds = [0.0]
    for weight in weights:
        bounds.append(bounds[-1] + weight / total)
    if seed is None:
        seed = random.randint(0, 2**32 - 1)
    return list(pairwise(bounds)), seed


def fraction_for(wanted: int, total: int, replace: bool) -> float:
    """Return a fraction that gives at least `wanted` records nearly always.

    Source: Meng, "Scalable Simple Random Sampling and Stratified Sampling" (2013).
    """
    fraction = float(wanted) / total
    if replace:
        deviations = 9 if wanted < 12 else 5
        return fraction + deviations * math.sqrt(fraction / total)
    gamma = -math.log(0.00005) / total
    return min(1, fraction + gamma + math.sqrt(gamma * gamma + 2 * gamma * fraction))
