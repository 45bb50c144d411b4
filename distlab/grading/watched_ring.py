"""A Comm and an all-reduce for a learner's training, and a note of each use of them.

    learner            trace of the rank
    comm.start(...) ─▶ (check) start 1          bucket 1, complete
    request.wait()  ─▶ (check) wait 1
    all_reduce(...) ─▶ (check) call 0 2.bias    at once; 2.bias's gradient not in it yet

A started all-reduce works on a copy, taken at the start and handed back by `wait`. So
whoever starts too early, or reads too early, finds wrong numbers in every run and not
in some. The notes are marks, because a trace is also left of a run that failed.
"""

import threading
from collections.abc import Iterator
from types import FunctionType
from typing import NamedTuple

import torch

from distlab.collectives import ring_all_reduce
from distlab.comm import Comm
from distlab.comm.watched import SameRank
from distlab.grading.notes import note

__all__ = ["Expected", "WatchedRing", "own_ring"]


class Expected(NamedTuple):
    """What a bucket is about to be sent with: names, and this rank's final gradients.

    wholes: for each name the gradients that have every sample in them, one for each
        way to weigh microbatches; None if contents are not looked at.
    """

    names: list[str]
    like: list[torch.Tensor]
    wholes: list[list[torch.Tensor]] | None


def own_ring() -> FunctionType:
    """Return a copy of the library's ring, which goes on when that is locked."""
    ring = FunctionType(ring_all_reduce.__code__, ring_all_reduce.__globals__)
    ring.__kwdefaults__ = ring_all_reduce.__kwdefaults__
    return ring


class WatchedRing(SameRank):
    """The Comm of a rank; `all_reduce` is the function to hand out beside it."""

    def __init__(self, comm: Comm, ring):
        super().__init__(comm)
        self._ring = ring
        self._buckets, self._sent = [], set()

    def expect(self, buckets: list[Expected]) -> None:
        """Begin a step, in which these are to be sent."""
        self._buckets, self._sent = buckets, set()

    def all_reduce(self, comm, tensor) -> None:
        """Add up in place over all ranks, at once."""
        side = threading.current_thread() is not threading.main_thread()
        note(self, "side" if side else "call", *self._described(tensor))
        self._ring(self, tensor)

    def start(self, collective, *args, **options):
        """Start the ring on a copy, if it is what is asked for."""
        if collective != self.all_reduce or not _one_tensor(args):
            return super().start(collective, *args, **options)
        described = list(self._described(args[0]))
        note(self, "start", *described)
        copy = args[0].detach().clone()
        request = super().start(self._ring, copy)
        return _Request(self, request, args[0], copy, described[0])

    def _described(self, tensor) -> Iterator[str]:
        """Yield which bucket this is, or "?"; then the names that are not in it yet."""
        if not isinstance(tensor, torch.Tensor):
            yield "?"
            return
        found = []
        for number, bucket in enumerate(self._buckets):
            total = sum(part.numel() for part in bucket.like)
            if (tensor.numel(), tensor.dtype) == (total, bucket.like[0].dtype):
                early = self._early(tensor, bucket)
                found.append((len(early), number in self._sent, number, early))
        if not found:
            yield from ["?", *self._like_another(tensor)]
            return
        *_, number, early = min(found)
        self._sent.add(number)
        yield from [str(number), *early]

    def _early(self, tensor, bucket):
        """Return the names whose piece is not their gradient, but for a factor."""
        if bucket.wholes is None:
            return []
        pieces = tensor.detach().flatten().split([part.numel() for part in bucket.like])
        return [
            name
            for name, piece, wholes in zip(
                bucket.names, pieces, bucket.wholes, strict=True
            )
            if not any(_parallel(piece, whole) for whole in wholes)
        ]

    def _like_another(self, tensor):
        """Return the name that this could be the gradient of, or nothing.

        If only its type is not that of a bucket, return that type and the right one.
        """
        size = tensor.numel()
        for bucket in self._buckets:
            for name, part in zip(bucket.names, bucket.like, strict=True):
                if (part.numel(), part.dtype) == (size, tensor.dtype):
                    return [name]
        for bucket in self._buckets:
            if size == sum(part.numel() for part in bucket.like):
                return [f"{tensor.dtype}", f"{bucket.like[0].dtype}"]
        return []


class _Request:
    """A started ring; its result is there once `wait` was called, and not before."""

    def __init__(self, comm, request, tensor, copy, name):
        self._comm, self._request, self._name = comm, request, name
        self._tensor, self._copy = tensor, copy

    def is_completed(self):
        """Return whether `wait()` would return at once."""
        return self._request.is_completed()

    def wait(self):
        """Wait until the all-reduce has ended; its tensor then holds the sum."""
        note(self._comm, "wait", self._name)
        self._request.wait()
        if self._copy is not None:
            with torch.no_grad():
                self._tensor.copy_(self._copy)
            self._copy = None


def _one_tensor(args):
    return len(args) == 1 and isinstance(args[0], torch.Tensor)


def _parallel(piece, whole):
    """Return whether two are equal but for a factor, which is a way to weigh."""
    whole = whole.flatten()
    factor = whole.dot(piece) / piece.dot(piece).clamp(min=1e-30)
    return torch.allclose(factor * piece, whole, 1e-4, 1e-6 * whole.abs().max().item())
