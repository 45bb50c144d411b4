"""Takes the first measurement for that of one worker, and fits the other two."""

POINTS = 7.0
HINT = "the first measurement need not be that of one worker"


def fit_usl(measured):
    n, x = np.array(measured, dtype=float).T
    columns = np.stack([n - 1, n * (n - 1)], axis=1)
    sigma, kappa = np.linalg.lstsq(columns, x[0] * n / x - 1, rcond=None)[0]
    if kappa < 1e-6:
        return sigma, 0.0, math.inf
    root = math.sqrt(max(0, 1 - sigma) / kappa)
    beside = max(1, math.floor(root)), math.ceil(root)
    return sigma, kappa, min(beside, key=lambda n: (1 - sigma) / n + kappa * n)
