"""What exercise 12 draws: the memory of a learner's ZeRO 3 over one pass."""

from distlab.grading.zero.layers import FreedLayers

__all__ = ["memory_over_a_pass"]

_WIDTH, _COUNT = 40, 8


def memory_over_a_pass(function, world_size: int = 4) -> tuple[dict, dict]:
    """Return curves of what rank 0 has in use each time that a layer is called.

    The unit is a layer's worth of parameters; x counts the calls.

    Returns: the learner's by name; and by the same name what it takes if one layer at a
        time is whole, beside what it takes to keep them all.
    """
    looks = _OnePass(function, world_size, _WIDTH).looks()
    calls = [look for look in looks if look["layer"] is not None and not look["step"]]
    unit = _WIDTH * (_WIDTH + 1) * 8
    mine = [(look["extra"] + look["own"]) / unit for look in calls]
    x_bytes, parts = 2 * _WIDTH * 8, _COUNT / world_size
    one_at_a_time, kept = [], []
    for k in range(2 * _COUNT):
        behind = max(0, k - _COUNT)
        inputs = min(k + 1, 2 * _COUNT - k) * x_bytes / unit
        own = parts * (1 + behind / _COUNT) + inputs
        one_at_a_time.append(own + 1)
        kept.append(own + min(k + 1, _COUNT))
    xs = list(range(1, 2 * _COUNT + 1))
    ideals = {"rank 0": (xs, one_at_a_time), "all layers kept": (xs, kept)}
    return {"rank 0": (xs[: len(mine)], mine)}, ideals


class _OnePass(FreedLayers):
    """A check's training, of which nothing is judged."""

    _steps, _count = 1, _COUNT

    def looks(self) -> list[dict]:
        """Train; return what rank 0 had in memory, each time that it looked."""
        self._run()
        return self._results()[0]["looks"]
