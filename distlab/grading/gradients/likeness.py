"""Where gradients differ from those of one process, and what they are instead.

A gradient is a sum over ranks and microbatches, each with a weight:

    mean     every sample counts 1 / samples of all ranks          as it should be
    sum      n times as much
    own      the share of this rank, times n
    ...
"""

from collections.abc import Iterator

import torch

from distlab.grading.gradients.notes import Difference
from distlab.grading.gradients.truth import Step

__all__ = ["first_difference", "first_moved"]


def first_difference(
    found: dict[str, torch.Tensor | None],
    step: Step,
    number: int,
    rank: int,
    *,
    exact: bool,
) -> Difference | None:
    """Return the first parameter whose gradient on a rank is wrong, or None.

    found: by name, None where there is no gradient, which counts as zeros.
    exact: whether the model computes in float64 only.
    """
    for name, right in step.gradients.items():
        mine = torch.zeros_like(right) if found[name] is None else found[name]
        if not _alike(mine, right, exact):
            like = _likeness(name, found[name], step, rank, exact)
            return _difference(number, name, mine, right, like)
    return None


def first_moved(
    found: dict[str, torch.Tensor], step: Step, number: int, *, exact: bool
) -> Difference | None:
    """Return the first parameter that is wrong after a step, or None."""
    for name, right in step.parameters.items():
        if not _alike(found[name], right, exact):
            return _difference(number, name, found[name], right, "parameter")
    return None


def _difference(number, name, found, right, like):
    place = (found - right).abs().argmax().item()
    pair = right.flatten()[place].item(), found.flatten()[place].item()
    return Difference(number, name, place, *pair, like)


def _alike(one, other, exact):
    """Return whether two tensors differ by rounding at most."""
    rtol, atol = (1e-9, 1e-12) if exact else (1e-4, 1e-6)
    return one.shape == other.shape and torch.allclose(one, other, rtol, atol)


def _likeness(name, found, step, rank, exact):
    """Return what a wrong gradient is like; "?" if it is like nothing known."""
    right, n = step.gradients[name], len(step.batches)
    if found is None:
        return "none"
    known = {"zero": 0 * right, "sum": n * right, "divided twice": right / n}
    for like, gradient in known.items():
        if _alike(found, gradient, exact):
            return like
    for like, weights in _weights(rank, step):
        gradient = _weighed(step, name, weights) + torch.zeros_like(right)
        if _alike(found, gradient, exact):
            return like
    for other, gradient in step.gradients.items():
        if other != name and _alike(found, gradient, exact):
            return f"of {other}"
    return "?"


def _weighed(step, name, weights):
    total = 0
    for own, factors in zip(step.batches, weights, strict=True):
        for batch, factor in zip(own, factors, strict=True):
            total = total + factor * batch.gradient(name)
    return total


def _weights(rank, step) -> Iterator[tuple[str, list[list[float]]]]:
    """Yield what a gradient may be like, and the weight of each microbatch in it."""
    n, total = len(step.batches), step.total
    batches = [[batch.count for batch in own] for own in step.batches]
    mine = [[float(r == rank)] * len(own) for r, own in enumerate(batches)]
    right = [[count / total for count in own] for own in batches]
    last = [[float(k == len(own) - 1) for k in range(len(own))] for own in batches]
    alone = [[count / max(1, sum(own)) for count in own] for own in batches]
    equal = [[1 / n] * len(own) for own in batches]
    per_batch = [[1 / n / max(1, len(own))] * len(own) for own in batches]
    for times in (n, 1, n * n, total, 1 / n):
        yield "own", _times(times, _both(mine, right))
    yield "own", mine
    yield "own", _both(mine, alone)
    yield "equal microbatches", equal
    yield "equal microbatches", _times(n, equal)
    yield "equal microbatches", _times(n / total, equal)
    yield "equal ranks", per_batch
    yield "equal ranks", _times(1 / n, alone)
    yield "equal ranks", alone
    yield "not by total", _times(total, right)
    yield "not by total", _times(total / n, right)
    yield "last microbatch", _both(last, right)
    yield "last microbatch", _times(1 / n, last)


def _times(factor, weights):
    return [[factor * weight for weight in own] for own in weights]


def _both(one, other):
    return [
        [a * b for a, b in zip(*pair, strict=True)]
        for pair in zip(one, other, strict=True)
    ]
