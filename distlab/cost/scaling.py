"""Speed-up of n workers: the laws of scaling, and their fits.

A speed-up is the time of one worker divided by that of n.

    Amdahl      1 / (s + (1 - s) / n)                    a fraction s is serial
    Gustafson   s + (1 - s) n                            the job grows with n instead
    USL         n / (1 + sigma (n - 1) + kappa n (n - 1))

sigma, contention, is a serial fraction: USL with kappa = 0 is Amdahl's law. kappa,
coherency, is the cost of keeping each pair in agreement; kappa > 0 makes a peak.

Source: Amdahl (1967); Gustafson, "Reevaluating Amdahl's law" (1988); Karp and Flatt,
    "Measuring parallel processor performance" (1990); Gunther, "Guerrilla Capacity
    Planning" (2007), chapter 4.
"""

import math
from collections.abc import Mapping

from distlab.errors import InvalidArgument

__all__ = [
    "amdahl_speedup",
    "fit_amdahl",
    "fit_usl",
    "gustafson_speedup",
    "karp_flatt",
    "usl_peak",
    "usl_speedup",
]


def amdahl_speedup(n: float, serial: float) -> float:
    """Return the speed-up of n workers on a job of which a part `serial` is serial."""
    return 1 / (serial + (1 - serial) / _workers(n))


def gustafson_speedup(n: float, serial: float) -> float:
    """Return the scaled speed-up: the work of n workers over one's in the same time.

    serial: the part of that time, on n workers, in which only one of them works.
    """
    return serial + (1 - serial) * _workers(n)


def usl_speedup(n: float, contention: float, coherency: float) -> float:
    """Return the speed-up by the Universal Scalability Law."""
    n = _workers(n)
    return n / (1 + contention * (n - 1) + coherency * n * (n - 1))


def usl_peak(contention: float, coherency: float) -> float:
    """Return the number of workers beyond which more of them are slower."""
    return math.sqrt((1 - contention) / coherency) if coherency > 0 else math.inf


def karp_flatt(n: float, speedup: float) -> float:
    """Return the serial fraction that Amdahl's law would need for this speed-up on n.

    Constant over n, the job behaves as if it had such a serial part. Rising, some loss
    grows with n: overhead such as communication, or load imbalance, which can also make
    it fall or stay. A timeline distinguishes them.
    """
    if _workers(n) == 1:
        raise InvalidArgument("one worker has no speed-up to explain: n is 2 or more.")
    return (1 / speedup - 1 / n) / (1 - 1 / n)


def fit_amdahl(speedups: Mapping[int, float]) -> float:
    """Return the serial part whose law fits measured speed-ups best, from 0 to 1.

    speedups: number of workers -> speed-up. Least squares of the times.
    """
    points = _points(speedups, at_least=1)
    slope = sum((1 - 1 / n) ** 2 for n, _ in points)
    serial = sum((1 / s - 1 / n) * (1 - 1 / n) for n, s in points) / slope
    return min(1.0, max(0.0, serial))


def fit_usl(speedups: Mapping[int, float]) -> tuple[float, float]:
    """Return contention and coherency whose law fits measured speed-ups best.

    Both are 0 or more. n / S - 1 is linear in the two, so this is least squares of
    that, as Gunther does it; if one comes out below 0, the other is fitted alone.
    """
    points = _points(speedups, at_least=2)
    rows = [(n - 1, n * (n - 1), n / s - 1) for n, s in points]
    xx, xz, zz, xy, zy = (
        sum(row[i] * row[j] for row in rows)
        for i, j in ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2))
    )
    determinant = xx * zz - xz * xz
    contention = (xy * zz - zy * xz) / determinant
    coherency = (zy * xx - xy * xz) / determinant
    if coherency < 0:
        contention, coherency = xy / xx, 0.0
    if contention < 0:
        contention, coherency = 0.0, max(0.0, zy / zz)
    return contention, coherency


def _workers(n):
    if not n >= 1:
        raise InvalidArgument(f"there is one worker at least, and got {n!r}.")
    return n


def _points(speedups, at_least):
    points = [(_workers(n), s) for n, s in speedups.items() if n != 1]
    if len(points) < at_least or any(not 0 < s < math.inf for _, s in points):
        raise InvalidArgument(
            "a fit needs speed-ups above 0 for "
            f"{at_least} numbers of workers or more besides 1, and got {speedups!r}."
        )
    return points
