"""Backward passes of simulated ranks, each in a thread, so that a rank can wait in it.

    coroutine    backward() ─▶ runs the thread      stand_still ─▶ others run ─┐
    thread                      └─▶ hook: wait ─ask─┘         hook goes on ◀───┘

Autograd keeps its state, such as the grad mode, per thread, and runs hooks inside of
its own C++ calls, so coroutines of one thread cannot take turns there; threads can.
One baton is handed on: one of them runs at a time, in the order of the virtual clock,
so nothing depends on the machine. Whoever has the baton may change the engine, but only
coroutines can suspend: a thread asks its rank's coroutine to.
"""

import ctypes
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import torch
from greenlet import getcurrent
from torch import overrides
from torch.autograd import Variable
from torch.utils import _python_dispatch as dispatch

__all__ = ["BackwardThread", "backward_in_threads"]


class BackwardThread:
    """One backward pass of a rank, in a thread; `run` returns its result.

    Invariant: `engine.away` is this object while its thread has the baton.
    """

    def __init__(self, engine, backward):
        self._engine, self._backward = engine, _in_these_modes(backward)
        self._to_rank, self._to_thread = threading.Lock(), threading.Lock()
        self._to_rank.acquire()
        self._to_thread.acquire()
        self._call = self._answer = self._error = None
        self._ended_by = None  # an exception that came from outside
        self._thread = threading.Thread(target=self._live, daemon=True)

    @property
    def gr_frame(self):
        """The innermost frame of the thread."""
        return sys._current_frames().get(self._thread.ident)

    def run(self):
        """Run the pass to its end, and what it asks for; called in the coroutine."""
        engine, who = self._engine, self._engine.running
        engine.backwards[who] = self
        go_on = self._thread.start
        while self._asks(go_on):
            try:
                self._answer = self._call()
            except BaseException as end:  # of the world, or of this rank
                self._ended_by = end
            go_on = self._to_thread.release
        self._thread.join()
        del engine.backwards[who]
        if self._error is not None:
            raise self._error
        return self._answer

    def ask(self, function, *args):
        """Call a function in the rank's coroutine; called in the thread."""
        if self._ended_by is None:
            self._call = partial(function, *args)
            self._to_rank.release()
            self._to_thread.acquire()
        if self._ended_by is not None:
            raise self._ended_by
        return self._answer

    def _asks(self, go_on):
        """Give the thread the baton; return True if it asks, False if it has ended."""
        self._engine.away = self
        try:
            go_on()
            self._to_rank.acquire()
        except KeyboardInterrupt as end:  # Ctrl-C reaches only the main thread
            self._ended_by = self._error = end
            number = ctypes.c_ulong(self._thread.ident)
            kind = ctypes.py_object(KeyboardInterrupt)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(number, kind)
            if self._to_thread.locked():  # it may have asked just now
                self._to_thread.release()
            return False
        finally:
            self._engine.away = None
        return self._call is not None

    def _live(self):
        try:
            self._answer = self._backward()
        except BaseException as error:
            self._error = error
        self._call = None
        self._to_rank.release()


def _in_these_modes(call):
    """Return a function that makes a call in a new thread, in this thread's modes."""
    modes = dispatch._get_current_dispatch_mode_stack()
    functions = overrides._get_current_function_mode_stack()
    amp = torch.get_autocast_dtype("cpu"), torch.is_autocast_enabled("cpu")

    def calls():
        for mode in modes:  # they end with the thread
            dispatch._push_mode(mode)
        for mode in functions:
            overrides._push_mode(mode)
        with torch.autocast("cpu", *amp):
            return call()

    return calls


class _Redirected(type(Variable._execution_engine)):
    """Autograd's engine; a simulated rank's backward runs in a thread."""

    def run_backward(self, *args, **options):
        """Run a backward pass, of `torch.autograd.backward` or `grad`."""
        backward = partial(super().run_backward, *args, **options)
        engine = getattr(getcurrent(), "engine", None)
        return backward() if engine is None else BackwardThread(engine, backward).run()


_lock, _plain = threading.Lock(), []


@contextmanager
def backward_in_threads() -> Iterator[None]:
    """Run backward passes of coroutines that have an `engine` in threads.

    Any other backward runs as always, also at the same time in another thread.
    """
    with _lock:
        _plain.append(Variable._execution_engine)
        Variable._execution_engine = _Redirected()
    try:
        yield
    finally:
        with _lock:  # the last one out restores the first
            first = _plain[0]
            _plain.pop()
            if not _plain:
                Variable._execution_engine = first
