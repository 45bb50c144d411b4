"""A time limit for processes that share the machine with others.

Time in which other programs had the processors does not count, up to a longest time.
Linux says for each process how long it ran and how long it waited for a processor; a
process that sleeps does neither, and its time counts.
"""

import os
import time

__all__ = ["TimeLimit"]

_FIRST_S, _LOOK_S, _STARVED = 0.2, 1.0, 0.25


class TimeLimit:
    """A limit of `limit_s` seconds, which grows up to `most_s` on a busy machine."""

    def __init__(self, processes, limit_s: float, most_s: float = 0.0):
        self._processes, self._grows = processes, most_s > limit_s
        now = time.monotonic()
        self._looked_s = now - _LOOK_S + _FIRST_S
        self._end_s, self._last_s = now + limit_s, now + max(limit_s, most_s)
        self._seen = self._seen_s = None

    def left_s(self) -> float:
        """Return the seconds that are left, as far as is known now."""
        now = time.monotonic()
        if self._grows:
            self._look(now)
        return min(self._end_s, self._last_s) - now

    def _look(self, now):
        """Ask once a second how long the processes ran; count what others took."""
        if now > self._looked_s + _LOOK_S:
            self._looked_s = now
            self._processes.request_usage()
        usage = self._processes.usage
        if usage is not self._seen:
            if self._seen is not None:
                self._end_s += lost_s(self._seen, usage, now - self._seen_s)
            self._seen, self._seen_s = usage, now


def lost_s(before: dict, after: dict, span_s: float) -> float:
    """Return the seconds that others took from processes that wanted to run.

    before, after: pid -> seconds that it ran, and waited for a processor.
    """
    each = {pid: before.get(pid, (0.0, 0.0)) for pid in after}
    ran = [after[pid][0] - each[pid][0] for pid in each]
    waited = [after[pid][1] - each[pid][1] for pid in each]
    if max(waited, default=0.0) < _STARVED * span_s:
        return 0.0
    eager = sum(sum(both) > span_s / 2 for both in zip(ran, waited, strict=True))
    cores = min(max(1, eager), len(os.sched_getaffinity(0)))
    return max(0.0, span_s - sum(ran) / cores)
