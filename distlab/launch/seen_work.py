"""A collective that torch runs, followed from its begin to its event in the trace.

    begun ─┬─▶ wait() returns or raises ───────┐
           ├─▶ gloo's thread ends the future ──┼─▶ end: one event, by the first of them
           └─▶ the rank's call is over: leave ─┘

An event without an end is of a collective that was aborted.
"""

import contextlib
import functools
import math
import threading
import time
from collections import deque

import torch
import torch.distributed as dist

from distlab.recorder import shown
from distlab.trace import members_of

__all__ = ["SeenWork"]

_kept = deque(maxlen=100)  # an older C++ waits forever for a work that Python released


class SeenWork(dist.Work):
    """A torch Work around a collective under way, which records its event.

    size: bytes of its tensors. later: whether the caller continues without waiting.
    on_gpu: the queue of collectives on a GPU, None for one on a CPU.
    """

    on_gpu, size, later = None, 0, False

    def __init__(self, hooks, comm, group, number, words, label):
        super().__init__()
        self._comm, self._group, self._number = comm, group, number
        self._words, self._label = words, label
        self._hooks, self._step = hooks, comm.recorder.step
        self._start, self.real = time.monotonic(), None
        self.ended, self._once = False, threading.Lock()
        self._future = None
        hooks.open.add(self)

    def begun(self, real):
        """Follow torch's own work from here on; return the work for the caller."""
        self.real = real
        if torch.__version__ < (2, 8):
            _kept.append(self)
        if real is None:  # it has ended, or torch collects several before they begin
            self.end()
            self._comm.recorder.running()
            return None
        if self.later:
            self._hooks.call_origin.begun(self)
            if self.on_gpu is None:
                with contextlib.suppress(RuntimeError):  # some have none
                    self._future = real.get_future()
                    self._future.add_done_callback(self._done)
            else:  # there a future ends at once; is_completed() finds the real end
                self.on_gpu.append(self)
                self._comm.recorder.running()
        return self

    def _done(self, future):
        at = time.monotonic()
        try:
            future.value()
        except Exception:
            at = math.nan
        self.end(at)

    def settle(self) -> bool:
        """Write its event now if it has ended; return True if it has.

        gloo's thread ends the future, for which DDP waits; then it calls `_done`, as
        soon as it gets the GIL; and only then is the work itself completed.
        """
        if not self.ended and self._future is not None and self._future.done():
            self._done(self._future)
        elif not self.ended and self.real is not None and self.real.is_completed():
            self.end()
        return self.ended

    def is_met(self) -> bool:
        """Return True if all ranks of its group have entered it."""
        recorder = self._comm.recorder
        members = members_of(self._group, recorder.world_size)
        return all(recorder.calls(r, self._group) >= self._number for r in members)

    def block(self):
        """Record that this rank waits for it."""
        self._comm.recorder.now(
            "blocked", "collective", call=self._number, group=self._group,
            label=shown(self._words), since=self._start,
        )  # fmt: skip

    def end(self, at=None):
        """Write its event, once. at: the time of its end, nan if it was aborted."""
        at = time.monotonic() if at is None else at
        what = -1, self.size, self._label, self._step, self._group
        with self._once:  # the second caller finds it written
            if not self.ended:
                self._comm.recorder.event("collective", self._start, at, *what)
                self.ended = True
                self._hooks.open.discard(self)

    def wait(self, *timeout, **named) -> bool:
        """Wait until it has ended; meanwhile this rank is blocked in it."""
        self.block()
        try:
            done = self.real.wait(*timeout, **named)
        except BaseException:
            self.end(math.nan)
            raise
        finally:
            self._comm.recorder.running()
        self.end()
        if not self.later:
            self._comm.check_agreement(self._number, self._words, self._group)
        return done


def _of_torch(name):
    def call(self, *args, **kwargs):
        return getattr(self.real, name)(*args, **kwargs)

    return functools.wraps(getattr(dist.Work, name))(call)


for _name in vars(dist.Work):
    if not _name.startswith("__") and _name not in vars(SeenWork):
        setattr(SeenWork, _name, _of_torch(_name))
