"""What one process makes of all ranks' samples, step by step.

A check has it, and no rank: a rank is told its own gradients, one at a time, each when
its backward gets there.
"""

from functools import partial
from typing import NamedTuple

import torch

from distlab.grading.gradients.trained import made, mean_loss, microbatch, rows_of

__all__ = ["RATE", "Batch", "Step", "Truth"]

RATE = 0.1


class Batch(NamedTuple):
    """One microbatch of one rank.

    loss: the mean over its `count` samples. arrivals: name -> gradient, in the order in
    which backward has them; a parameter that is not used is not there.
    """

    count: int
    loss: float
    arrivals: dict[str, torch.Tensor]

    def gradient(self, name: str) -> torch.Tensor | int:
        """Return a parameter's gradient, or 0."""
        return self.arrivals.get(name, 0)


class Step(NamedTuple):
    """One step: each rank's microbatches, and what one process has after it.

    gradients, parameters: by name; parameters also of what is not trained.
    """

    batches: list[list[Batch]]
    gradients: dict[str, torch.Tensor]
    parameters: dict[str, torch.Tensor]

    @property
    def total(self) -> int:
        """How many samples all ranks have."""
        return sum(batch.count for own in self.batches for batch in own)


class Truth:
    """A model's parameters at the start, and what becomes of them.

    counts: for each step, rank and microbatch how many samples.
    exact: whether the model computes in float64 only.
    """

    def __init__(self, name: str, counts: list[list[list[int]]]):
        self._model, self._arrivals = made(name), {}
        self.rows = rows_of(self._model)
        self.start = self._parameters()
        self.exact = all(p.dtype == torch.float64 for p in self.start.values())
        for key, p in self._trained().items():
            p.register_post_accumulate_grad_hook(partial(self._arrived, key))
        self.steps = [self._step(step, own) for step, own in enumerate(counts)]

    def _trained(self):
        return {n: p for n, p in self._model.named_parameters() if p.requires_grad}

    def _parameters(self):
        return {n: p.detach().clone() for n, p in self._model.named_parameters()}

    def _step(self, step, counts):
        samples = [
            [microbatch(step, rank, k, count) for k, count in enumerate(own)]
            for rank, own in enumerate(counts)
        ]
        batches = [[self._backward(x) for x in own] for own in samples]
        whole = self._backward(torch.cat([x for own in samples for x in own]))
        gradients = {}
        with torch.no_grad():
            for name, p in self._trained().items():
                gradients[name] = whole.arrivals.get(name, torch.zeros_like(p))
                p -= RATE * gradients[name]
        return Step(batches, gradients, self._parameters())

    def _arrived(self, name, p):
        self._arrivals[name] = p.grad.clone()

    def _backward(self, x):
        self._model.zero_grad()
        self._arrivals = {}
        loss = mean_loss(self._model, x)
        loss.backward()
        return Batch(len(x), loss.item(), self._arrivals)
