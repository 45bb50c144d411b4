"""Which bucket an all-reduce is of, what is missing in it, and what it adds up to."""

from dataclasses import dataclass

import torch

from distlab.grading.gradients.layout import Row
from distlab.grading.gradients.truth import Batch

__all__ = ["Buffer", "described", "total_of"]


@dataclass
class Buffer:
    """What a rank has all-reduced, and what that is called in its notes.

    numbers: None if it was no tensor. waited: whether its rank has waited for it.
    """

    dtype: str
    numbers: torch.Tensor | None
    called: str
    waited: bool = False


def described(
    dtype: str,
    numbers: torch.Tensor | None,
    buckets: list[list[Row]],
    sent: set[int],
    batches: list[Batch] | None,
) -> list[str]:
    """Return which bucket this is, or "?"; then the names that are not in it yet.

    sent: buckets that were sent before; another one is preferred. batches: what has to
    be in it; None if contents are not looked at. If this could be the gradient of one
    parameter, its name follows "?"; if only its type is wrong, that and the right one.
    """
    if numbers is None:
        return ["?"]
    found = []
    for number, rows in enumerate(buckets):
        if (len(numbers), dtype) == (_size(rows), rows[0].dtype):
            early = [] if batches is None else _early(numbers, rows, batches)
            found.append((len(early), number in sent, number, early))
    if found:
        *_, number, early = min(found)
        return [f"{number}", *early]
    return ["?", *_like_another(dtype, len(numbers), buckets)]


def _size(rows):
    return sum(row.numbers for row in rows)


def _early(numbers, rows, batches):
    """Return the names whose piece is not their gradient, but for a factor."""
    pieces = numbers.split([row.numbers for row in rows])
    return [
        row.name
        for row, piece in zip(rows, pieces, strict=True)
        if not any(_parallel(piece, whole) for whole in _wholes(row, batches))
    ]


def _wholes(row, batches):
    """Return a rank's gradient of all its microbatches, weighed in two ways.

    With a weight for every sample, and with a weight for every microbatch: that is
    whole too, and what is wrong with it is seen in the gradients.
    """
    by_sample, by_batch = torch.zeros(2, row.numbers, dtype=torch.double)
    for batch in batches:
        gradient = torch.as_tensor(batch.gradient(row.name)).flatten()
        by_sample += gradient * batch.count
        by_batch += gradient
    return by_sample, by_batch


def _parallel(piece, whole):
    """Return whether two are equal but for a factor, which is a way to weigh."""
    factor = whole.dot(piece) / piece.dot(piece).clamp(min=1e-30)
    return torch.allclose(factor * piece, whole, 1e-4, 1e-6 * whole.abs().max().item())


def _like_another(dtype, size, buckets):
    for row in (row for rows in buckets for row in rows):
        if (row.numbers, row.dtype) == (size, dtype):
            return [row.name]
    for rows in buckets:
        if size == _size(rows):
            return [f"torch.{dtype}", f"torch.{rows[0].dtype}"]
    return []


def total_of(buffers: list[Buffer]) -> list[float]:
    """Return what the buffers of all ranks add up to.

    Raises: ValueError if they are not equally long.
    """
    if len({len(buffer.numbers) for buffer in buffers}) > 1:
        raise ValueError("ranks all-reduce what is not equally long")
    return sum(buffer.numbers for buffer in buffers).tolist()
