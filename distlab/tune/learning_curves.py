"""Synthetic learning curves with a known winner, also with slow starters.

A loss falls from `first` to `floor` as a power of the steps, of the form `pow3` of
Domhan et al. (2015, Speeding up Automatic Hyperparameter Optimization of Deep Neural
Networks by Extrapolation of Learning Curves) with exponent 1. Which there are is
assumed, not measured:

fast starters   one speed, floors of 0.3 to 2.3: curves never cross, so that losses
                after one step rank them as losses at the end do
slow starters   16 times slower, floors below 0.1, as a small learning rate may have:
                among the worst after 16 steps, and the best from 180 steps on
"""

import random
from typing import NamedTuple

from distlab.tune.tuning_run import check_whole

__all__ = ["CurveShape", "draw_curves", "loss_after"]


class CurveShape(NamedTuple):
    """The losses of a configuration. half_after: the steps until half of the fall."""

    first: float
    floor: float
    half_after: float


def loss_after(shape: CurveShape, steps: int) -> float:
    """Return a configuration's validation loss after some steps."""
    return shape.floor + (shape.first - shape.floor) / (1 + steps / shape.half_after)


def draw_curves(count: int, seed: int = 0, slow_starters: int = 0) -> list[CurveShape]:
    """Return the shapes of `count` random configurations, with so many slow starters.

    Raises: InvalidArgument for a count below 1, or more slow starters than that.
    """
    check_whole(slow_starters=(slow_starters, 0), count=(count, max(1, slow_starters)))
    draw = random.Random(seed)
    slow = [CurveShape(2.5, draw.uniform(0, 0.1), 16) for _ in range(slow_starters)]
    fast = [draw.uniform(0.3, 2.3) for _ in range(count - slow_starters)]
    shapes = slow + [CurveShape(2.5, floor, 1) for floor in fast]
    draw.shuffle(shapes)
    return shapes
