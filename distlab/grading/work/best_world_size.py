"""The check of a formula: on how many ranks is a job done soonest?

    T(n) = serial_s + parallel_s / n + message_s * (n - 1)

The right answer is found in exact fractions, by halving: T falls until one more rank
costs as much as it saves, and then rises. The learner's function runs on one rank of
its own, where it can be stopped.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

from distlab.errors import RankDied, WorldTimeout
from distlab.grading.calling import called
from distlab.grading.check import WorldCheck, story_of
from distlab.grading.hints import hint_for_failure
from distlab.grading.probes import number_in, shown
from distlab.grading.verdict import Verdict

__all__ = ["BestWorldSize"]


def answer_probe(comm, function, job) -> dict:
    """Return what the function returned for a job, and that as two numbers or None."""
    returned = called(function, *job)
    pair = isinstance(returned, tuple | list) and len(returned) == 2
    numbers = [number_in(value) for value in returned] if pair else [None]
    return {
        "numbers": None if None in numbers else numbers,
        "shown": shown(returned),
    }


@dataclass
class BestWorldSize(WorldCheck):
    """The fastest world size of one job, the smallest if several are, and its speed-up.

    serial_s, parallel_s, message_s: seconds. most: the largest world size there is.
    """

    world_size: int = field(default=1, init=False)
    serial_s: float
    parallel_s: float
    message_s: float
    most: int

    _probe = staticmethod(answer_probe)
    _returns: ClassVar = {"numbers": ([float, 2], None), "shown": str}
    _timeout_s = 5

    @property
    def title(self):
        """Say what is tried."""
        return (
            f"serial_s={self.serial_s:g}, parallel_s={self.parallel_s:g}, "
            f"message_s={self.message_s:g}, most={self.most:,}"
        )

    def _arguments(self):
        return ((self.serial_s, self.parallel_s, self.message_s, self.most),)

    def time_s(self, n: int) -> Fraction:
        """Return T(n), exactly."""
        shared = Fraction(self.parallel_s) / n
        return Fraction(self.serial_s) + shared + Fraction(self.message_s) * (n - 1)

    def best(self) -> int:
        """Return the fastest world size, exactly, the smallest if several are."""
        low, high = 1, self.most
        while low < high:
            middle = (low + high) // 2
            if self.time_s(middle + 1) < self.time_s(middle):
                low = middle + 1
            else:
                high = middle
        return low

    def speed_up(self, n: int) -> float:
        """Return how many times faster n ranks are than one."""
        return float(self.time_s(1) / self.time_s(n))

    def _failed(self, failure):
        if isinstance(failure, WorldTimeout | RankDied):
            what = f"There was no answer within {self._timeout_s} s"
            if isinstance(failure, RankDied):
                what = f"The function {failure.cause}"
            return self._fail(
                f"{what}, with {self.most:,} world sizes to choose from.",
                "Do not try them all. At the fastest n, what one more rank saves is no "
                "more than what it costs: for which n is that?",
            )
        story = story_of(failure).removeprefix("rank 0 raised ")
        return self._fail(story, self._hint_for_raised(failure))

    def _hint_for_raised(self, failure):
        cause = failure.cause
        if isinstance(cause, NotImplementedError):
            return (
                "Nothing of your own is written yet. Which term of T falls with n, "
                "which one rises, and where do they balance?"
            )
        if isinstance(cause, MemoryError):
            return "A list of all world sizes does not fit. Do not try them all."
        divided = isinstance(cause, ZeroDivisionError | OverflowError)
        if divided and not self.message_s:
            return (
                "Messages can cost nothing, with message_s = 0. How many ranks are "
                "fastest then?"
            )
        if isinstance(cause, ZeroDivisionError):
            return "A formula can round to 0 ranks. The smallest world has one."
        return hint_for_failure(failure)

    def _compare(self, report):
        result = report.results[0]
        if result["numbers"] is None:
            return self._fail(
                f"It returned {result['shown']}.",
                "Return two numbers, the world size and its speed-up: return n, ...",
            )
        n, speed_up = result["numbers"]
        best = self.best()
        wrong = self._not_a_size(n, speed_up) or self._another(n, best)
        if wrong is None and not math.isclose(speed_up, self.speed_up(best)):
            wrong = self._hint_for_speed_up(n, speed_up)
        if wrong is None:
            return None
        return Verdict("fail", self.title, self._table(n, speed_up, best), wrong)

    def _table(self, n, speed_up, best):
        rows = [("", "n", "T(n)", "speed-up")]
        rows.append(
            ("expected", f"{best:,}", self._seconds(best), f"{self.speed_up(best):.6g}")
        )
        rows.append(
            (
                "yours",
                f"{n:,}" if isinstance(n, int) else f"{n:g}" if n % 1 else f"{n:.1f}",
                self._seconds(n),
                f"{speed_up:.6g}",
            )
        )
        wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(
                [row[0].ljust(wide[0])]
                + [cell.rjust(w) for cell, w in zip(row[1:], wide[1:], strict=True)]
            )
            for row in rows
        )

    def _seconds(self, n):
        whole = isinstance(n, int) and n >= 1
        return f"{float(self.time_s(n)):.6g} s" if whole else "-"

    def _not_a_size(self, n, speed_up):
        """Return a nudge if n is no number of ranks that there are, or None."""
        if isinstance(n, float) and isinstance(speed_up, int):
            return "The world size comes first, then the speed-up."
        if isinstance(n, float):
            return (
                "A number of ranks is an int. Of the whole numbers on both sides of "
                "what your formula gives, which is faster?"
            )
        if n < 1:
            return "A formula can round to 0 ranks. The smallest world has one."
        if n > self.most:
            return "There are `most` ranks and no more. What is the fastest then?"
        return None

    def _another(self, n, best):
        """Return a nudge if n is not the fastest world size, or None."""
        if n == best:
            return None
        if self.time_s(n) == self.time_s(best):
            return (
                "Several world sizes are equally fast; the smallest one is asked for."
            )
        if abs(n - best) == 1:
            return (
                "Next to it. Where your formula gives no whole number, the nearest one "
                "is not always the fastest: compare T on both sides of it."
            )
        if n == self.most:
            return "More ranks are not always faster. What does T(n) do when n grows?"
        return (
            "At the fastest n, one more rank saves no more than it costs. What does it "
            "save, going from n to n + 1, and what does it cost?"
        )

    def _hint_for_speed_up(self, n, speed_up):
        """Return a nudge for the right world size with a wrong speed-up."""
        right = self.speed_up(n)
        if math.isclose(speed_up * right, 1):
            return "This is T(n)/T(1). The speed-up says how often T(n) goes into T(1)."
        if math.isclose(speed_up, float(self.time_s(n))):
            return (
                "This is T(n) itself, in seconds. The speed-up compares it with T(1)."
            )
        if math.isclose(speed_up, right, rel_tol=0.05):
            return "Nearly: is the speed-up rounded, or a term of T left out?"
        return "The speed-up is T(1)/T(n), both with all three terms."
