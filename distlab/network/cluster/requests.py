"""`Requests`: what other threads ask of the thread that looks after a cluster."""

import socket
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from distlab.errors import InvalidArgument

__all__ = ["Requests"]


class Requests:
    """A queue of calls, with a socket that can be polled, and their answers.

    error: what every request gets once there is no thread any more; None before. lock:
    held while that changes.
    """

    def __init__(self):
        self.error, self.lock = None, threading.Lock()
        self._asked, self._promised = deque(), set()
        self._ours, self._bell = socket.socketpair()
        for sock in (self._ours, self._bell):
            sock.setblocking(False)

    def fileno(self) -> int:
        """Return the descriptor that can be read when something was asked."""
        return self._ours.fileno()

    def ask(self, method: Callable, *args: Any) -> Any:
        """Have the thread call a method; return its result, or that of its Future.

        Raises: what the method raises; `error` after the end.
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
        try:
            self._bell.send(b"!")
        except OSError:
            pass  # it is full, or the thread has ended

    def serve(self) -> None:
        """Do, in the thread, what was asked."""
        try:
            self._ours.recv(4096)
        except BlockingIOError:
            pass
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
        """End all waiting: `error` is set."""
        for sock in (self._ours, self._bell):
            sock.close()
        for future in {*self._promised, *(future for future, *_ in self._asked)}:
            future.set_exception(self.error)
