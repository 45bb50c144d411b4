"""`Comm.start`: collectives that run while the rank goes on, and their requests.

    main thread     backward of layer 3 │ layer 2 │ layer 1 │ wait
                          └ start(ring_all_reduce, gradients of 3)
    comm thread               ┊ step 1 ┊ step 2 ┊ ...         ┊ ends

A Comm has one thread for this, and what is started runs in the order of starting, so
that all ranks make the same calls in the same order, as with a stream of NCCL. What is
started on different Comms of a rank, such as two subgroups, runs side by side.

On a GPU the thread has a CUDA stream of its own, else its additions would queue behind
all of backward. What is started waits on that stream for what the caller's stream has
been given so far, and has ended only when the GPU has done it. So whoever has waited
may read the tensors, or free them, on any stream.
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
        result = self._future.result()
        for each in result if isinstance(result, list | tuple) else [result]:
            if isinstance(each, torch.Tensor) and each.is_cuda:
                # It is memory of the other stream, which must not take it back while
                # kernels of this one read it.
                each.record_stream(torch.cuda.current_stream(each.device))
        return result


class StartedCalls:
    """The communication thread of one Comm; it exists once something was started.

    of_rank: those of all Comms of this rank.
    besides: how many threads of distlab's own the rank has for other things.
    """

    besides = 0

    def __init__(self, device: torch.device, of_rank: list | None = None):
        self._device = device
        self._thread = self._ident = None
        self._pending, self._waiters = [], []
        self._threads = 0
        self._of_rank = [] if of_rank is None else of_rank
        self._of_rank.append(self)

    def another(self) -> "StartedCalls":
        """Return those of another Comm of this rank, which do not wait for these."""
        other = StartedCalls(self._device, self._of_rank)
        other.besides = self.besides
        return other

    def here(self) -> bool:
        """Return whether this is the thread on which they run."""
        return self._ident == threading.get_ident()

    def start(self, call: Callable, *args, **options) -> Started:
        """Have `call(*args, **options)` run after those started before."""
        if self._thread is None:
            before, self._threads = threading.active_count(), 1
            self._thread = ThreadPoolExecutor(1, "distlab-comm", self._enter)
            self._thread.submit(int).result()
            # 2 if this comes from a hook on a GPU: Python then counts autograd's thread
            self._threads = threading.active_count() - before
        if self._device.type == "cuda":
            ready = torch.cuda.current_stream(self._device).record_event()
            future = self._thread.submit(_on_own_stream, ready, call, *args, **options)
        else:
            future = self._thread.submit(call, *args, **options)
        # What has ended well is forgotten, for a future holds what it returned.
        self._pending = [f for f in self._pending if not f.done() or f.exception()]
        self._pending.append(future)
        return Started(future)

    def beside(self, call: Callable[[], None]) -> Future:
        """Have `call()` run on a thread of its own, which ends with it."""
        future = Future()

        def body():
            try:
                future.set_result(call())
            except Exception as error:
                future.set_exception(error)

        self._waiters = [each for each in self._waiters if each.is_alive()]
        self._waiters.append(threading.Thread(target=body, daemon=True))
        self._waiters[-1].start()
        return future

    def others_run(self) -> bool:
        """Return whether this rank has more threads than those started here."""
        running = threading.active_count() - 1 - self.besides
        return running > 0 and running > sum(each.threads() for each in self._of_rank)

    def threads(self) -> int:
        """Return how many threads there are because of these."""
        return self._threads + sum(each.is_alive() for each in self._waiters)

    def drain(self) -> None:
        """Wait until all that was started has ended, if this is not its own thread.

        A Comm's messages stay in one order, whichever thread sends them. What a call
        raised is left for its `wait`.
        """
        if self._pending and not self.here():
            for future in self._pending:
                future.exception()
            self._pending.clear()

    def finish(self) -> None:
        """Wait for all that this rank has started; raise what the first raised."""
        for each in self._of_rank:
            pending, each._pending = each._pending, []
            for future in pending:
                future.result()

    def _enter(self):
        self._ident = threading.get_ident()
        if self._device.type == "cuda":
            torch.cuda.set_device(self._device)
            torch.cuda.set_stream(torch.cuda.Stream(self._device))


def _on_own_stream(ready, call, *args, **options):
    """Call it after what the starting stream had to do, and see it done on the GPU."""
    stream = torch.cuda.current_stream()
    stream.wait_event(ready)
    result = call(*args, **options)
    stream.synchronize()
    return result
