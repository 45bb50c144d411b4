"""Where gradients differ from those of one process, and what they are instead.

A gradient is a sum over ranks and microbatches, each with a weight:

    mean     every sample counts 1 / samples of all ranks          as it should be
    sum      n times as much
    own      the share of this rank, times n
    ...
"""

from collections.abc import Iterator

import torch

from distlab.grading.notes import Difference
from distlab.grading.trained import mean_loss

__all__ = ["alike", "first_difference", "is_exact"]


def first_difference(model, whole, rank, step, batches) -> Difference | None:
    """Return the first parameter whose gradient is not that of `whole`, or None.

    batches: for each rank its microbatches.
    """
    theirs = {n: _gradient(p) for n, p in whole.named_parameters() if p.requires_grad}
    ours = dict(model.named_parameters())
    exact = is_exact(model)
    for name, right in theirs.items():
        found = _gradient(ours[name])
        if not alike(found, right, exact):
            place = (found - right).abs().argmax().item()
            pair = right.flatten()[place].item(), found.flatten()[place].item()
            like = _likeness(model, name, theirs, rank, batches)
            return Difference(step, name, place, *pair, like)
    return None


def is_exact(model) -> bool:
    """Return whether a model computes in float64 only."""
    return all(p.dtype == torch.float64 for p in model.parameters())


def _gradient(parameter):
    """Return the gradient; zeros stand for none."""
    if parameter.grad is None:
        return torch.zeros_like(parameter)
    return parameter.grad.detach()


def alike(one: torch.Tensor, other: torch.Tensor, exact: bool) -> bool:
    """Return whether two tensors differ by rounding at most.

    exact: whether the model computes in float64 only.
    """
    rtol, atol = (1e-9, 1e-12) if exact else (1e-4, 1e-6)
    return one.shape == other.shape and torch.allclose(one, other, rtol, atol)


def _likeness(model, name, theirs, rank, batches):
    """Return what a wrong gradient is like; "?" if it is like nothing known."""
    parameter = dict(model.named_parameters())[name]
    found, n = _gradient(parameter), len(batches)
    if parameter.grad is None:
        return "none"
    right, exact = theirs[name], is_exact(model)
    known = {"zero": 0 * right, "sum": n * right, "divided twice": right / n}
    for like, gradient in known.items():
        if alike(found, gradient, exact):
            return like
    parts = _parts(model, parameter, batches)
    for like, weights in _weights(rank, batches):
        if alike(found, _weighed(parts, weights), exact):
            return like
    for other, gradient in theirs.items():
        if other != name and alike(found, gradient, exact):
            return f"of {other}"
    return "?"


def _parts(model, parameter, batches):
    """Return for each rank and microbatch the gradient of its mean loss."""
    return [
        [
            torch.autograd.grad(
                mean_loss(model, x), [parameter], materialize_grads=True
            )[0]
            for x in own
        ]
        for own in batches
    ]


def _weighed(parts, weights):
    total = 0
    for own, factors in zip(parts, weights, strict=True):
        for part, factor in zip(own, factors, strict=True):
            total = total + factor * part
    return total


def _weights(rank, batches) -> Iterator[tuple[str, list[list[float]]]]:
    """Yield what a gradient may be like, and the weight of each microbatch in it."""
    n, total = len(batches), sum(len(x) for own in batches for x in own)
    mine = [[float(r == rank)] * len(own) for r, own in enumerate(batches)]
    right = [[len(x) / total for x in own] for own in batches]
    last = [[float(k == len(own) - 1) for k in range(len(own))] for own in batches]
    alone = [[len(x) / max(1, sum(map(len, own))) for x in own] for own in batches]
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
