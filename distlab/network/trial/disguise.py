"""Other values in the place of those that clients write.

    judge: write x 1 ─▶ node: write x 804153 ─▶ ... ─▶ 804153 ─▶ judge: read → 1

Who writes what when is the same in every trial. What stands for it is not, so that no
node can answer from memory what it was never told.
"""

import random
from typing import Any

__all__ = ["Disguise"]


class Disguise:
    """A one-to-one map of values, made up as it goes. draw: None for no disguise."""

    def __init__(self, draw: random.Random | None):
        self._draw = draw
        self._other, self._own = {}, {}

    def put_on(self, value: Any) -> Any:
        """Return what stands for a number or a word."""
        kind = type(value)
        if self._draw is None or kind not in (int, str):
            return value
        if value not in self._other:
            other = self._draw.randrange(10**5, 10**9)
            other = other if kind is int else f"item{other}"
            self._other[value], self._own[other] = other, value
        return self._other[value]

    def taken_off(self, value: Any) -> Any:
        """Return an answer with the values that were meant."""
        kind = type(value)
        if kind in (int, str):
            return self._own.get(value, value)
        if kind in (list, tuple, set):
            return kind(map(self.taken_off, value))
        if kind is dict:
            own = self.taken_off
            return {own(key): own(part) for key, part in value.items()}
        return value
