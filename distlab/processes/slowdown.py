"""Slow processes: `Slowdown` stops them for a part of each period.

a factor of 4    █░░░█░░░█░░░    continued for a quarter of each period, then stopped
"""

import signal
import time
from collections.abc import Container, Iterable

__all__ = ["Slowdown"]

_PERIOD_S = 0.008


class Slowdown:
    """A throttle that stops and continues some processes of a group in each period.

    slow: (index, factor), how many times slower; a factor of 1 leaves it alone.
    TICK_S: the interval in which to call `beat`. False if no process is slow.
    """

    TICK_S = 0.001

    def __init__(self, processes, slow: Iterable[tuple[int, float]]):
        self._processes = processes
        self._slow = [(index, factor) for index, factor in slow if factor > 1]
        self._stopped = set()

    def __bool__(self):
        return bool(self._slow)

    def beat(self, spared: Container[int]) -> None:
        """Stop or continue each slow process by the clock; those spared run on."""
        phase = time.monotonic() % _PERIOD_S / _PERIOD_S
        for index, factor in self._slow:
            stop = phase * factor >= 1 and index not in spared
            if stop != (index in self._stopped):
                (self._stopped.add if stop else self._stopped.discard)(index)
                number = signal.SIGSTOP if stop else signal.SIGCONT
                self._processes.signal(index, number)

    def replaced(self, index: int) -> None:
        """Note that a new process, which is running, has this index."""
        self._stopped.discard(index)

    def release(self) -> None:
        """Continue all of them."""
        for index, _ in self._slow:
            self._processes.signal(index, signal.SIGCONT)
