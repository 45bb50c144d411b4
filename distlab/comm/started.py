"""`Comm.start`: collectives that run while the rank goes on, and their requests.

    main thread     backward of layer 3 │ layer 2 │ layer 1 │ wait
                          └ start(ring_all_reduce, gradients of 3)
    comm thread               ┊ step 1 ┊ step 2 ┊ ...         ┊ ends

A rank has one thread for this, and what is started runs in the order of starting, so
that all ranks make the same calls in the same order, as with a stream of NCCL.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import torch

__all__ = ["Started", "StartedCalls"]


class Started:
    """A collective under way, from `Comm.start`; `wait()` ends it."""

    def __init__(self, future: Future):
        self._future = future

    def is_completed(self) -> bool:
        """Return whether `wait()` would return at once."""
        return self._future.done()

    def wait(self) -> object:
        """Wait until the collective has ended; return, or raise, what it did."""
        return self._future.result()


class StartedCalls:
    """The communication thread of one rank; it exists once something was started."""

    def __init__(self, device: torch.device):
        self._device = device
        self._thread = self._ident = None
        self._pending = []

    @property
    def threads(self) -> int:
        """How many threads this takes: 0 or 1."""
        return int(self._thread is not None)

    def start(self, call: Callable, *args, **options) -> Started:
        """Have `call(*args, **options)` run after those started before."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "distlab-comm", self._enter)
        # what has ended well is forgotten, for a future holds the tensors it returned
        self._pending = [f for f in self._pending if not f.done() or f.exception()]
        self._pending.append(self._thread.submit(call, *args, **options))
        return Started(self._pending[-1])

    def drain(self) -> None:
        """Wait until all that was started has ended, if this is not its own thread.

        A rank's messages stay in one order, whichever thread sends them. What a call
        raised is left for its `wait`.
        """
        if self._pending and threading.get_ident() != self._ident:
            for future in self._pending:
                future.exception()
            self._pending.clear()

    def finish(self) -> None:
        """Wait for all that was started; raise what the first that failed raised."""
        pending, self._pending = self._pending, []
        for future in pending:
            future.result()

    def _enter(self):
        self._ident = threading.get_ident()
        if self._device.type == "cuda":
            torch.cuda.set_device(self._device)
