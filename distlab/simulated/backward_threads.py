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
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from queue import Empty, SimpleQueue

import torch
from greenlet import getcurrent
from torch.autograd import Variable
from torch.utils import _python_dispatch as dispatch

__all__ = ["BackwardThread", "backward_in_threads"]


class BackwardThread:
    """The thread of a rank's backward passes; `run` returns a pass's result.

    Invariant: `engine.away` is this object while the thread has the baton.
    """

    def __init__(self, engine):
        self._engine, self._busy, self._ended_by = engine, False, None
        self._to_thread, self._to_rank = SimpleQueue(), SimpleQueue()
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._thread.start()

    @property
    def gr_frame(self):
        """The innermost frame of a pass, as of a coroutine."""
        frames = sys._current_frames() if self._busy else {}
        return frames.get(self._thread.ident)

    def run(self, backward):
        """Run a pass to its end, and what it asks for; called in the coroutine."""
        self._busy, given = True, _in_these_modes(backward)
        while callable(call := self._give_baton(given)):
            try:
                given = call(), None
            except BaseException as end:  # of the world, or of this rank
                given = None, end
        self._busy, (result, error) = False, call
        if error is not None:
            raise error
        return result

    def ask(self, function, *args):
        """Call a function in the rank's coroutine; called in the thread."""
        answer = None
        if self._ended_by is None:
            self._to_rank.put(partial(function, *args))
            answer, self._ended_by = self._to_thread.get()
        if self._ended_by is not None:
            raise self._ended_by
        return answer

    def end(self) -> None:
        """End the thread, after the pass that it is in."""
        self._to_thread.put(None)
        self._thread.join()

    def _give_baton(self, given):
        """Return a call that the thread asks for, or its pass's result and error."""
        self._engine.away = self
        try:
            self._to_thread.put(given)
            while True:
                with suppress(Empty):  # a signal just before get() would not end it
                    return self._to_rank.get(timeout=0.5)
        except KeyboardInterrupt as end:  # Ctrl-C reaches only the main thread
            self._ended_by = end
            self._to_thread.put((None, end))  # it may have asked just now
            number = ctypes.c_ulong(self._thread.ident)
            kind = ctypes.py_object(KeyboardInterrupt)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(number, kind)
            self.end()
            while not self._to_rank.empty():
                last = self._to_rank.get()
                if isinstance(last, tuple) and isinstance(last[1], KeyboardInterrupt):
                    end = last[1]  # with the line of the pass
            return None, end
        finally:
            self._engine.away = None

    def _live(self):
        with suppress(KeyboardInterrupt):  # one that came after its pass
            while callable(backward := self._to_thread.get()):
                try:
                    self._to_rank.put((backward(), None))
                except BaseException as error:
                    self._to_rank.put((None, error))


def _in_these_modes(call):
    """Return a function that makes a call in another thread, in this one's modes."""
    modes = dispatch._get_current_dispatch_mode_stack()
    amp = torch.get_autocast_dtype("cpu"), torch.is_autocast_enabled("cpu")

    def calls():
        with ExitStack() as stack, torch.autocast("cpu", *amp):
            for mode in modes:
                dispatch._push_mode(mode)
                stack.callback(dispatch._pop_mode)
            return call()

    return calls


class _Redirected(type(Variable._execution_engine)):
    """Autograd's engine; a simulated rank's backward runs in a thread."""

    def run_backward(self, *args, **options):
        """Run a backward pass, of `torch.autograd.backward` or `grad`."""
        backward = partial(super().run_backward, *args, **options)
        engine = getattr(getcurrent(), "engine", None)
        if engine is None:
            return backward()
        if engine.running not in engine.backwards:
            engine.backwards[engine.running] = BackwardThread(engine)
        return engine.backwards[engine.running].run(backward)


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
