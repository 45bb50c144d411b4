"""Graphs of gossip SGD: each rank averages with its neighbours, without a center.

    ring           torus            exponential           complete
    0 ─ 1          0 ─ 1 ─ 2        0 ─▶ 1, 2, 4          each with each
    │   │          │   │   │        1 ─▶ 2, 3, 5
    3 ─ 2          3 ─ 4 ─ 5        ...

A graph is its **mixing matrix** W: rank i replaces its parameters by the sum of
W[i, j] times those of rank j. Rows and columns of W sum to 1, so that the mean of all
ranks stays. The **spectral gap**, 1 minus the second largest magnitude of W's
eigenvalues, bounds the convergence to that mean: after t averages the distance is at
most (1 - gap)^t of the initial one, if W is symmetric.

Source: Lian et al., "Can decentralized algorithms outperform centralized algorithms?"
(2017); Ying et al., "Exponential graph is provably efficient for decentralized deep
training" (2021).
"""

import math

import numpy as np

from distlab.errors import InvalidArgument

__all__ = [
    "complete_graph",
    "exponential_graph",
    "ring_graph",
    "spectral_gap",
    "torus_graph",
]


def ring_graph(n: int) -> np.ndarray:
    """Return the mixing matrix of a ring: each rank and its two neighbours."""
    return _mixing(n, [{(i + 1) % n, (i - 1) % n} for i in range(n)])


def torus_graph(rows: int, columns: int) -> np.ndarray:
    """Return the mixing matrix of a grid with wrap-around: four neighbours."""
    neighbours = []
    for i in range(rows * columns):
        row, column = divmod(i, columns)
        up, down = (row - 1) % rows * columns, (row + 1) % rows * columns
        left, right = (column - 1) % columns, (column + 1) % columns
        sides = {up + column, down + column, row * columns + left}
        neighbours.append(sides | {row * columns + right})
    return _mixing(rows * columns, neighbours)


def exponential_graph(n: int) -> np.ndarray:
    """Return the mixing matrix in which i receives from ranks i-1, i-2, i-4, ..."""
    hops = [2**k for k in range(math.ceil(math.log2(n)))] if n > 1 else []
    return _mixing(n, [{(i - hop) % n for hop in hops} for i in range(n)])


def complete_graph(n: int) -> np.ndarray:
    """Return the mixing matrix of an all-reduce: each rank receives from all."""
    return np.full((n, n), 1 / n)


def _mixing(n, neighbours):
    matrix = np.zeros((n, n))
    for i, others in enumerate(neighbours):
        matrix[i, [i, *(others - {i})]] = 1 / (len(others - {i}) + 1)
    return matrix


def spectral_gap(matrix: np.ndarray) -> float:
    """Return 1 minus the second largest magnitude of the eigenvalues, from 0 to 1.

    Raises: InvalidArgument for a matrix whose rows or columns don't sum to 1.
    """
    checked_mixing(matrix, len(matrix))
    magnitudes = np.sort(np.abs(np.linalg.eigvals(matrix)))[::-1]
    return float(1 - (magnitudes[1] if len(magnitudes) > 1 else 0.0))


def checked_mixing(matrix: np.ndarray, n: int) -> np.ndarray:
    """Return a mixing matrix of n ranks, if it keeps their mean.

    Raises: InvalidArgument.
    """
    matrix = np.asarray(matrix, dtype=float)
    square = matrix.shape == (n, n) and n > 0
    if not square or not all(np.allclose(matrix.sum(axis), 1) for axis in (0, 1)):
        raise InvalidArgument(
            f"a mixing matrix of {n} ranks is {n} x {n}, and each row and each column "
            "sums to 1, so that the mean of all ranks stays."
        )
    return matrix
