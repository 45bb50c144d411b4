"""`Comm.start`: collectives in the background of a rank, and their requests.

    main thread     backward of layer 3 │ layer 2 │ layer 1 │ wait
                          └ start(ring_all_reduce, gradients of 3)
    comm thread               ┊ step 1 ┊ step 2 ┊ ...         ┊ ends

A Comm has one thread for this, and collectives run in the order of starting, so that
all ranks make the same calls in the same order, as with a stream of NCCL. Those started
on different Comms of a rank, such as two subgroups, run concurrently.

On a GPU the thread has a CUDA stream of its own, else its additions would queue behind
all of backward. A collective waits on that stream for the work that the caller's stream
has so far, and has ended only when the GPU has done it. So after `wait()` the tensors
may be read, or freed, on any stream.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import torch

__all__ = ["Started", "StartedCalls", "thread_of"]


class Started:
    """A running collective, from `Comm.start`; `wait()` ends it."""

    def __init__(self, future: Future):
        self._future = future

    def is_completed(self) -> bool:
        """Return True if `wait()` would return at once."""
        return self._future.done()

    def wait(self) -> object:
        """Wait until the collective has ended; return its result or raise its error."""
        result = self._future.result()
        for each in result if isinstance(result, list | tuple) else [result]:
            if isinstance(each, torch.Tensor) and each.is_cuda:
                # It is memory of the other stream, which must not reuse it while
                # kernels of this one read it.
                each.record_stream(torch.cuda.current_stream(each.device))
        return result


class StartedCalls:
    """The communication thread of one Comm; it exists once a collective was started.

    of_rank: the StartedCalls of all Comms of this rank.
    besides: the number of distlab's own threads in this rank for other purposes.
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
        """Return the StartedCalls of another Comm of this rank; they run separately."""
        other = StartedCalls(self._device, self._of_rank)
        other.besides = self.besides
        return other

    def here(self) -> bool:
        """Return True if the caller runs on the communication thread."""
        return self._ident == threading.get_ident()

    def start(self, call: Callable, *args, **options) -> Started:
        """Queue `call(*args, **options)` behind those started before."""
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
        # Futures that ended without an error are dropped, since they hold results.
        self._pending = [f for f in self._pending if not f.done() or f.exception()]
        self._pending.append(future)
        return Started(future)

    def beside(self, call: Callable[[], None]) -> Future:
        """Run `call()` on a thread of its own, which ends with it."""
        thread, future = thread_of(call)
        self._waiters = [*filter(threading.Thread.is_alive, self._waiters), thread]
        thread.start()
        return future

    def others_run(self) -> bool:
        """Return True if this rank has more threads than those started here."""
        running = threading.active_count() - 1 - self.besides
        return running > 0 and running > sum(each.threads() for each in self._of_rank)

    def threads(self) -> int:
        """Return the number of threads that these calls have started."""
        return self._threads + sum(each.is_alive() for each in self._waiters)

    def drain(self) -> None:
        """Wait until all started calls have ended, unless on their own thread.

        A Comm's messages stay in one order, whichever thread sends them. A call's error
        is left for its `wait`.
        """
        if self._pending and not self.here():
            for future in self._pending:
                future.exception()
            self._pending.clear()

    def finish(self) -> None:
        """Wait for all calls that this rank has started; raise the first error."""
        for each in self._of_rank:
            pending, each._pending = each._pending, []
            for future in pending:
                future.result()

    def _enter(self):
        self._ident = threading.get_ident()
        if self._device.type == "cuda":
            torch.cuda.set_device(self._device)
            torch.cuda.set_stream(torch.cuda.Stream(self._device))


def thread_of(call: Callable[[], object]) -> tuple[threading.Thread, Future]:
    """Return a daemon thread that runs `call()` once started, and its Future."""
    future = Future()

    def body():
        try:
            future.set_result(call())
        except Exception as error:
            future.set_exception(error)

    return threading.Thread(target=body, daemon=True), future


def _on_own_stream(ready, call, *args, **options):
    """Run a call after the starting stream's work; return when the GPU has done it."""
    stream = torch.cuda.current_stream()
    stream.wait_event(ready)
    result = call(*args, **options)
    stream.synchronize()
    return result
