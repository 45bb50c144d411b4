"""Deferred Ctrl-C: noted at once, raised again where no state is half changed."""

import signal
import threading

__all__ = ["Interrupts"]


class Interrupts:
    """A context manager that defers SIGINT; `pending` is True once it has arrived.

    On the way out the signal is raised again under the previous handler, so that a
    notebook, a script and a debugger each react in their own way; but the body's own
    KeyboardInterrupt, which carries more, takes precedence. Outside the main thread,
    where Python delivers no signals, this does nothing.
    """

    def __init__(self):
        self.pending = False
        self._before = None

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            before = signal.getsignal(signal.SIGINT)
            if callable(before):  # else it is ignored, or set by something not Python
                self._before = before
                signal.signal(signal.SIGINT, self._note)
        return self

    def _note(self, signum, frame):
        self.pending = True

    def __exit__(self, kind, error, _):
        if self._before is None:
            return
        signal.signal(signal.SIGINT, self._before)
        try:
            if self.pending:
                signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            if not isinstance(error, KeyboardInterrupt):
                raise
