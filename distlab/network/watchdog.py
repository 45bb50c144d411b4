"""A watchdog for nodes that never return from a method.

The simulator and the search call nodes in the learner's own process, where a node that
loops forever cannot be killed; in a process of a cluster it does the same, so that both
report the same failure. A thread measures how long each call has taken, and makes one
that takes too long raise `NeverReturned`, in the middle of its loop.

The limit is in processor time, so that load of the machine does not count against a
node. A node that sleeps uses none; its limit is longer, in elapsed time, multiplied by
DISTLAB_PATIENCE. While a process is paused (SIGSTOP), so is its watchdog, and that time
does not count.
"""

import ctypes
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from distlab.patience import patience

__all__ = ["NeverReturned", "Watchdog"]

_CPU_S, _CLOCK_S, _LOOK_S = 2.0, 20.0, 0.25
_PAUSED_S = 3.0  # from one look to the next


class NeverReturned(BaseException):
    """An exception raised inside a node's method that has run for too long.

    It is no Exception, so that a node that catches every Exception does not catch it.
    """


class Watchdog:
    """A context manager that watches the thread that enters it.

    calls: the number of calls of nodes' methods.
    inside: whether one is being called now.
    """

    def __init__(self):
        self.calls = 0
        self.inside = False

    def __enter__(self):
        self._ident = threading.get_ident()
        self._over = threading.Event()
        self._clock_s = patience(_CLOCK_S)
        self._main = threading.current_thread() is threading.main_thread()
        if self._main:
            self._before = signal.signal(signal.SIGVTALRM, self._bite)
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.inside = False
        self._over.set()
        self._thread.join()
        if self._main:
            signal.signal(signal.SIGVTALRM, self._before or signal.SIG_DFL)

    def call(self, method: Callable, *args: Any) -> Any:
        """Call a node's method; return its result."""
        self.calls += 1
        self.inside = True
        result = method(*args)
        self.inside = False
        return result

    def _watch(self):
        clock = time.pthread_getcpuclockid(self._ident)
        seen, since_cpu, since, looked = -1, 0.0, 0.0, 0.0
        while not self._over.wait(_LOOK_S):
            now_cpu, now = time.clock_gettime(clock), time.monotonic()
            paused, looked = now > looked + _PAUSED_S, now
            if self.calls != seen or not self.inside or paused:
                seen, since_cpu, since = self.calls, now_cpu, now
                continue
            late = now_cpu - since_cpu > _CPU_S or now - since > self._clock_s
            if late and not self._debugged():
                self._interrupt()

    def _debugged(self):
        """Return True if a debugger traces the watched thread."""
        frame = sys._current_frames().get(self._ident)
        while frame is not None:
            if frame.f_trace is not None:
                return True
            frame = frame.f_back
        return False

    def _interrupt(self):
        if self._main:  # a signal also ends a sleep
            signal.pthread_kill(self._ident, signal.SIGVTALRM)
        else:
            ident = ctypes.c_ulong(self._ident)
            raised = ctypes.py_object(NeverReturned)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, raised)

    def _bite(self, signum, frame):
        if self.inside:
            raise NeverReturned
