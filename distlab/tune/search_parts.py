"""Parts of a search: points at random and of a grid, budgets, duplicates, retries."""

import math
import random
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import TypeVar

__all__ = ["grid", "halving_steps", "log_uniform", "near_duplicates", "retry"]

T = TypeVar("T")


def log_uniform(draw: random.Random, low: float, high: float) -> float:
    """Return a random number whose logarithm is uniform between those of the ends."""
    return math.exp(draw.uniform(math.log(low), math.log(high)))


def grid(axes: Mapping[str, Sequence]) -> list[dict]:
    """Return every combination of one value from each axis, as a dict."""
    return [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]


def near_duplicates(points: Sequence[Sequence[float]], distance: float) -> int:
    """Return the number of points with an earlier one this close in each coordinate."""
    found = 0
    for number, point in enumerate(points):
        found += any(
            all(abs(a - b) < distance for a, b in zip(point, other, strict=True))
            for other in points[:number]
        )
    return found


def halving_steps(trials: int, rungs: Sequence[int], eta: int) -> int:
    """Return the steps of successive halving; a promoted trial goes on where it was."""
    total, done = 0, 0
    for steps in rungs:
        total += trials * (steps - done)
        done, trials = steps, trials // eta
    return total


def retry(operation: Callable[[], T], attempts: int = 5, first_wait_s=0.01) -> T:
    """Call operation(), and again while the database is locked; return its result.

    operation: a whole transaction, not its last statement. It waits longer each time,
    by a random share. After the last attempt, and for any other error, it raises.
    """
    for attempt in range(attempts):
        try:
            return operation()
        except sqlite3.OperationalError as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the rest: why busy
            if code != sqlite3.SQLITE_BUSY or attempt == attempts - 1:
                raise
        time.sleep(first_wait_s * 2**attempt * random.uniform(0.5, 1))
