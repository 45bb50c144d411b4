"""What the check that weighs ranks has each do: train layers of some MiB.

A layer does something with a few of its parameters only. Which ones is told by the
check when the layer is called, so a rank has to have all of them until then, and tells
few.
"""

import torch

from distlab.grading.zero.live_memory import LiveTensors
from distlab.grading.zero.probes import (
    Layers,
    Optimizer,
    lock_the_lesson,
    telling,
    train,
)
from distlab.processes import give_back_at_once

__all__ = ["drawn", "train_large_stack"]


def drawn(seed: int, length: int) -> torch.Tensor:
    """Return the parameters of a large layer; the check draws the same."""
    draw = torch.Generator().manual_seed(seed)
    return torch.rand(length, generator=draw, dtype=torch.float64) - 0.5


def train_large_stack(comm, function, steps: int, passes: int) -> None:
    """Train a stack of large layers by the learner's ZeRO 3; tell what is seen."""
    lock_the_lesson()
    with LiveTensors() as live:
        train(_LargeLayers(telling(comm), live), comm, function, steps, passes)


class _Plain(Optimizer):
    """Steps all by itself: so many numbers are not told."""

    @torch.no_grad()
    def step(self):
        rate = self._tell("stepped", self._number)
        for tensor in self.tensors:
            if tensor.grad is not None:
                tensor.sub_(tensor.grad, alpha=rate)


class _LargeLayers(Layers):
    """Layers of which the check sees a few parameters each."""

    _optimizer = _Plain

    def _flat(self, told):
        return drawn(*told)

    def look(self, graph=False):
        give_back_at_once()  # what is free in what was inherited has been used since
        return super().look(graph)

    def _places(self, i):
        return torch.tensor(self.tell("places", i))

    def seen(self, i, full):
        return full.detach()[self._places(i)]

    def gradient(self, i, numbers):
        with self._live.paused():
            places = self._places(i)
        found = torch.zeros(self.lengths[i], dtype=torch.float64)
        found[places] = torch.tensor(numbers, dtype=torch.float64)
        return found
