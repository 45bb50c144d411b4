"""A Comm and an all-reduce for a learner's training; the check is asked for each sum.

    learner            the check hears
    comm.start(...) ─▶ reduce "start", the numbers     bucket 1, complete
    request.wait()  ─▶ waits, sum                      answers with the sum
    all_reduce(...) ─▶ reduce "call", the numbers      2.bias's gradient not in it yet

What is started travels as zeros, so that messages and their sizes are those of a ring;
the sum comes from the check when the rank waits for it. So whoever starts too early, or
reads too early, finds wrong numbers in every run and not in some.
"""

import threading
from types import FunctionType

import torch

from distlab.collectives import ring_all_reduce
from distlab.comm import Comm
from distlab.comm.watched import SameRank

__all__ = ["WatchedRing", "own_ring"]


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

    def tell(self, *said) -> object:
        """Tell the check; return what it answers."""
        return self.ask_at_once(said)

    def all_reduce(self, comm, tensor) -> None:
        """Add up in place over all ranks, at once."""
        side = threading.current_thread() is not threading.main_thread()
        number = self._told("side" if side else "call", tensor)
        if isinstance(tensor, torch.Tensor):
            self.tell("enters", number)
        self._ring(self, tensor)

    def start(self, collective, *args, **options):
        """Start the ring, if it is what is asked for; the sum comes later."""
        if collective != self.all_reduce or not _one_tensor(args):
            return super().start(collective, *args, **options)
        number = self._told("start", args[0])
        room = torch.zeros_like(args[0])
        return _Request(self, super().start(self._enter, number, room), args[0], number)

    def _enter(self, comm, number, room):
        self.tell("enters", number)
        self._ring(self, room)

    def _told(self, kind, tensor):
        if not isinstance(tensor, torch.Tensor):
            return self.tell("reduce", kind, "", None)
        dtype = str(tensor.dtype).removeprefix("torch.")
        return self.tell("reduce", kind, dtype, tensor.detach().flatten().tolist())


class _Request:
    """A started ring; its result is there once `wait` was called, and not before."""

    def __init__(self, comm, request, tensor, number):
        self._comm, self._request = comm, request
        self._tensor, self._number = tensor, number

    def is_completed(self):
        """Return whether `wait()` would return at once."""
        return self._request.is_completed()

    def wait(self):
        """Wait until the all-reduce has ended; its tensor then holds the sum."""
        self._comm.tell("waits", self._number)
        self._request.wait()
        if self._tensor is not None:
            numbers = torch.tensor(
                self._comm.tell("sum", self._number), dtype=torch.double
            )
            with torch.no_grad():
                self._tensor.copy_(numbers.view_as(self._tensor))
            self._tensor = None


def _one_tensor(args):
    return len(args) == 1 and isinstance(args[0], torch.Tensor)
