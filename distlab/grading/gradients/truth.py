"""What one process makes of all ranks' samples, step by step.

A check has it, and no rank: a rank has its own samples, and is told the factors of its
gates one at a time, each when its backward gets there.
"""

import random
from functools import partial
from itertools import chain, count
from typing import NamedTuple

import torch

from distlab.grading.gradients.gates import Gate, drawn, gate
from distlab.grading.gradients.trained import (
    made,
    mean_loss,
    microbatch,
    rows_of,
    with_gates,
)
from distlab.grading.salt import is_salted, salted

__all__ = ["RATE", "Batch", "Step", "Truth"]

RATE = 0.1


class Batch(NamedTuple):
    """One microbatch of one rank.

    arrivals: name -> gradient of the mean loss, in the order in which backward has
    them; a parameter that is not used is not there. gates: by their place in forward.
    """

    samples: torch.Tensor
    arrivals: dict[str, torch.Tensor]
    gates: dict[int, Gate]

    @property
    def count(self) -> int:
        """How many samples it has."""
        return len(self.samples)

    def gates_of(self, name: str) -> set[int]:
        """Return the gates before a parameter's gradient, one for each use of it."""
        return {place for place, gate in self.gates.items() if gate.name == name}

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
        self._model, self._arrivals, self._gates = made(name), {}, {}
        with_gates(self._model, self._gated)
        self._name_of = {p: name for name, p in self._model.named_parameters()}
        # Factors that were told tell nothing of the next ones, nor of another run's.
        self._draw = random.SystemRandom() if is_salted() else salted("gates", name)
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
        total, gradients = sum(map(sum, counts)), {}
        with torch.no_grad():
            for name, p in self._trained().items():
                gradients[name] = torch.zeros_like(p)
                for batch in chain(*batches):
                    gradients[name] += batch.count / total * batch.gradient(name)
                p -= RATE * gradients[name]
        return Step(batches, gradients, self._parameters())

    def _arrived(self, name, p):
        self._arrivals[name] = p.grad.clone()

    def _backward(self, x):
        self._model.zero_grad()
        self._arrivals, self._gates, self._places = {}, {}, count()
        mean_loss(self._model, x).backward()
        return Batch(x, self._arrivals, self._gates)

    def _gated(self, x, parameter):
        place, name = next(self._places), self._name_of[parameter]
        return gate(x, partial(self._passed, place, name))

    def _passed(self, place, name, slope):
        self._gates[place] = Gate(name, slope.clone(), drawn(slope, self._draw))
        return self._gates[place].factors
