"""Fits Amdahl's law, which has no peak."""

POINTS = 7.0
HINT = "Sigma alone is Amdahl's law"


def fit_usl(measured):
    n, x = np.array(measured, dtype=float).T
    columns = np.stack([np.ones_like(n), n - 1], axis=1)
    one, queue = np.linalg.lstsq(columns, n / x, rcond=None)[0]
    return queue / one, 0.0, math.inf
