"""What exercise 12 draws: the memory of a learner's ZeRO 3 over one pass."""

from distlab.launch import run

__all__ = ["memory_over_a_pass"]

_WIDTH, _COUNT = 40, 8


def memory_over_a_pass(function, world_size: int = 4) -> tuple[dict, dict]:
    """Return curves of what rank 0 has in use each time that a layer is called.

    The unit is a layer's worth of parameters; x counts the calls.

    Returns: the learner's by name, and by the same name one layer at a time.
    """
    args = function, (_WIDTH, _COUNT, 1, 1), "momentum"
    looks = run(_probe, world_size, args=args, quiet=True).results[0]["looks"]
    calls = [look for look in looks if look["layer"] is not None and not look["step"]]
    lengths = [_WIDTH * (_WIDTH + 1) + i % 2 for i in range(_COUNT)]
    unit, parts = lengths[0] * 8, sum(-(-each // world_size) for each in lengths) * 8
    mine = [(look["extra"] + look["own"]) / unit for look in calls]
    ideal = []
    for k in range(len(calls)):
        back = max(0, k - _COUNT)
        inputs = 2 * _WIDTH * 8 * (k + 1 if k < _COUNT else 2 * _COUNT - k)
        ideal.append((parts * (1 + back / _COUNT) + unit + inputs) / unit)
    xs = list(range(1, len(calls) + 1))
    return {"rank 0": (xs, mine)}, {"rank 0": (xs, ideal)}


def _probe(comm, *args):
    from distlab.grading.zero_probes import train_stack  # torch: only ranks load it

    return train_stack(comm, *args)
