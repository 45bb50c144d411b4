"""Chance whose state is one number, so that a node with chance is quick to copy."""

import random
from typing import Any

__all__ = ["Chance"]

_MASK = (1 << 64) - 1


class Chance(random.Random):
    """A `random.Random` that remembers 64 bits, not 20,000.

    Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators"
    (2014): SplitMix64.
    """

    def seed(self, a: Any = None, version: int = 2) -> None:
        """Begin anew from `a`."""
        self._state = random.Random(a).getrandbits(64) if a is not None else 0

    def getrandbits(self, k: int) -> int:
        """Return `k` random bits."""
        bits = 0
        for _ in range(-(-k // 64)):
            self._state = mixed = (self._state + 0x9E3779B97F4A7C15) & _MASK
            mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
            mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
            bits = bits << 64 | mixed ^ (mixed >> 31)
        return bits >> (-k % 64)

    def random(self) -> float:
        """Return a number from 0 to below 1."""
        return self.getrandbits(53) * 2.0**-53

    def getstate(self) -> int:
        """Return what `setstate` takes."""
        return self._state

    def setstate(self, state: int) -> None:
        """Go on from where `getstate` was called."""
        self._state = state
