"""Local SGD: many steps without communication, then one average.

    rank 0   step step step step ┐           ┌ step step step step ┐
    rank 1   step step step step ├─ average ─┤ step step step step ├─ ...
    rank 2   step step step step ┘     │     └ step step step step ┘
                                  outer step

The mean change of the ranks' parameters serves as a gradient, and an outer optimizer
steps with it. With SGD at a rate of 1 that is the plain average of their parameters;
with Nesterov's momentum it is DiLoCo.

Source: Stich, "Local SGD converges fast and communicates little" (2019); Douillard et
al., "DiLoCo: distributed low-communication training of language models" (2023).
"""

from collections.abc import Callable

import torch
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from distlab.collectives import AVERAGE, ring_all_reduce
from distlab.errors import InvalidArgument
from distlab.train.replica_checks import check_same_model, copy_from_rank_0

__all__ = ["LocalSGD", "nesterov"]


def nesterov(parameters: list) -> torch.optim.Optimizer:
    """Return the outer optimizer that was best in the DiLoCo paper."""
    return torch.optim.SGD(parameters, lr=0.7, momentum=0.9, nesterov=True)


class LocalSGD:
    """A model that each rank trains by itself, averaged every H steps.

    every: H, the steps between two averages; 1 is data parallel training by SGD.
    outer: makes the outer optimizer of a list of one flat parameter.

    Cost: every H steps an all-reduce of the parameters.
    """

    def __init__(
        self, comm, module: nn.Module, *, every: int, outer: Callable | None = None
    ):
        if type(every) is not int or every < 1:
            raise InvalidArgument(f"every is a number from 1 up, and got {every!r}.")
        check_same_model(comm, module)
        copy_from_rank_0(comm, module)
        self.comm, self.module, self.every, self.steps = comm, module, every, 0
        self._center = parameters_to_vector(module.parameters()).detach()
        self._outer = (outer or (lambda p: torch.optim.SGD(p, lr=1.0)))([self._center])

    def after_step(self) -> bool:
        """Count a step of this rank's optimizer; return True if an average followed.

        The optimizer's own state, such as momentum, stays each rank's.
        """
        self.steps += 1
        if self.steps % self.every:
            return False
        mine = parameters_to_vector(self.module.parameters()).detach()
        moved = self._center - mine
        ring_all_reduce(self.comm, moved, op=AVERAGE)
        self._center.grad = moved
        self._outer.step()
        # A copy, since parameters become views of the vector.
        vector_to_parameters(self._center.clone(), self.module.parameters())
        return True
