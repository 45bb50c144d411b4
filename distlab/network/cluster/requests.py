"""`Requests`: calls from other threads to the supervisor's thread of a cluster."""

import socket
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from distlab.errors import InvalidArgument

__all__ = ["Requests"]


class Requests:
    """A queue of calls, with a socket that can be polled, and their results.

    error: the exception of every request once the thread has ended; None before. lock:
    held while that changes.
    """

    def __init__(self):
        self.error, self.lock = None, threading.Lock()
        self._asked, self._promised = deque(), set()
        self._ours, self._bell = socket.socketpair()
        for sock in (self._ours, self._bell):
            sock.setblocking(False)

    def fileno(self) -> int:
        """Return the descriptor that is readable when there is a request."""
        return self._ours.fileno()

    def ask(self, method: Callable, *args: Any) -> Any:
        """Call a method in the thread; return its result, or that of its Future.

        Raises: the method's InvalidArgument; `error` after the end.
        """
        future = Future()
        with self.lock:
            if self.error is not None:
                raise self.error
            self._asked.append((future, method, args))
        self.ring()
        return future.result()

    def ring(self) -> None:
        """Wake the thread."""
        with suppress(OSError):  # it is full, or the thread has ended
            self._bell.send(b"!")

    def serve(self) -> None:
        """Run the queued calls; called in the thread."""
        with suppress(BlockingIOError):
            self._ours.recv(4096)
        while self._asked:
            self._do(*self._asked.popleft())

    def _do(self, future, method, args):
        self._promised.add(future)
        future.add_done_callback(self._promised.discard)
        try:
            result = method(*args)
        except InvalidArgument as error:
            return future.set_exception(error)
        if isinstance(result, Future):
            result.add_done_callback(lambda done: future.set_result(done.result()))
        else:
            future.set_result(result)

    def close(self) -> None:
        """End all waiting requests with `error`, which is set before."""
        for sock in (self._ours, self._bell):
            sock.close()
        for future in {*self._promised, *(future for future, *_ in self._asked)}:
            future.set_exception(self.error)
