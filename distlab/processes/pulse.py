"""`Pulse`: processes that get their processor for a part of the time only.

a factor of 4    █░░░█░░░█░░░    continued for a quarter of each period, then stopped
"""

import signal
import time
from collections.abc import Container, Iterable

__all__ = ["Pulse"]

_PERIOD_S = 0.008


class Pulse:
    """Stops and continues some processes of a group in turn, each time it is asked.

    slow: (index, factor), how many times slower; a factor of 1 is none.
    TICK_S: how often to ask. False if no process is slow.
    """

    TICK_S = 0.001

    def __init__(self, processes, slow: Iterable[tuple[int, float]]):
        self._processes = processes
        self._slow = [(index, factor) for index, factor in slow if factor > 1]
        self._stopped = set()

    def __bool__(self):
        return bool(self._slow)

    def beat(self, spared: Container[int]) -> None:
        """Stop or continue each as it is its time; those spared are let go on."""
        phase = time.monotonic() % _PERIOD_S / _PERIOD_S
        for index, factor in self._slow:
            stop = phase * factor >= 1 and index not in spared
            if stop != (index in self._stopped):
                (self._stopped.add if stop else self._stopped.discard)(index)
                number = signal.SIGSTOP if stop else signal.SIGCONT
                self._processes.signal(index, number)

    def replaced(self, index: int) -> None:
        """Know that a new process, which runs, is in this place."""
        self._stopped.discard(index)

    def release(self) -> None:
        """Let all of them go on."""
        for index, _ in self._slow:
            self._processes.signal(index, signal.SIGCONT)
