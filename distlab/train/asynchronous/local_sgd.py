"""Local SGD: many steps without communication, then one average.

    rank 0   step step step step ┐           ┌ step step step step ┐
    rank 1   step step step step ├─ average ─┤ step step step step ├─ ...
    rank 2   step step step step ┘     │     └ step step step step ┘
                                  outer step

The mean change of the ranks' parameters serves as a gradient, and an outer optimizer
steps with it. With SGD at a rate of 1 that is the plain average of their parameters;
with Nesterov's momentum it is DiLoCo. `StreamingLocalSGD` sends fragments of the
parameters, one after another, and doesn't wait for them.

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

__all__ = ["LocalSGD", "StreamingLocalSGD", "fragment_due", "nesterov"]


def nesterov(parameters: list) -> torch.optim.Optimizer:
    """Return the outer optimizer that was best in the DiLoCo paper."""
    return torch.optim.SGD(parameters, lr=0.7, momentum=0.9, nesterov=True)


def fragment_due(step: int, every: int, fragments: int) -> int | None:
    """Return the fragment whose average starts after a step, or None.

    Each has its turn once in `every` steps, at even distances; fragment 0 at the end.
    """
    turns = {every * number // fragments: number for number in range(fragments)}
    return turns.get(step % every)


class LocalSGD:
    """A model that each rank trains by itself, averaged every H steps.

    every: H, the steps between two averages; 1 is data parallel training by SGD.
    outer: makes the outer optimizer of a list of one flat parameter, `center`, which
        holds the parameters after the last average.

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
        self.center = parameters_to_vector(module.parameters()).detach()
        self.outer = (outer or (lambda p: torch.optim.SGD(p, lr=1.0)))([self.center])

    @property
    def extra_bytes(self) -> int:
        """The bytes kept between averages: the center, and the outer state for it."""
        state = self.outer.state[self.center].values()
        return self.center.nbytes + sum(
            part.nbytes for part in state if part is not None
        )

    def after_step(self) -> bool:
        """Count a step of this rank's optimizer; return True if an average followed.

        The optimizer's own state, such as momentum, stays each rank's.
        """
        self.steps += 1
        if self.steps % self.every:
            return False
        mine = parameters_to_vector(self.module.parameters()).detach()
        moved = self.center - mine
        ring_all_reduce(self.comm, moved, op=AVERAGE)
        self.center.grad = moved
        self.outer.step()
        self.center.grad = None  # 4 bytes a parameter, needed only while averaging
        # A copy, since parameters become views of the vector.
        vector_to_parameters(self.center.clone(), self.module.parameters())
        return True


class StreamingLocalSGD:
    """Local SGD that averages one fragment at a time, while the next steps run.

    rank 0   step step step step step step        fragments=2, every=4, delay=1
                  └─ 1 ─┘   └─ 0 ─┘               average, applied one step later

    every: H, the steps between two averages of a fragment. fragments: P of about equal
        length, averaged in turn. delay: steps from the start of an average to its use.
    mix: the share of a rank's own fragment that stays when an average is applied, since
        it has moved on meanwhile.

    Cost: every H / P steps an all-reduce of a P-th of the parameters.
    Source: Douillard et al., "Streaming DiLoCo with overlapping communication" (2025).
    """

    def __init__(
        self,
        comm,
        module: nn.Module,
        *,
        every: int,
        fragments: int,
        delay: int = 0,
        mix: float = 0.0,
        outer: Callable = nesterov,
        due: Callable = fragment_due,
    ):
        if not 0 < fragments <= every or not 0 <= delay < every or not 0 <= mix <= 1:
            raise InvalidArgument(
                "fragments are 1 to every, a delay is shorter than every, and mix is "
                f"from 0 to 1; got every={every!r}, fragments={fragments!r}, "
                f"delay={delay!r}, mix={mix!r}."
            )
        check_same_model(comm, module)
        copy_from_rank_0(comm, module)
        self.comm, self.module, self.due, self.steps = comm, module, due, 0
        self.every, self.delay, self.mix = every, delay, mix
        flat = parameters_to_vector(module.parameters()).detach()
        self.centers = [part.clone() for part in flat.tensor_split(fragments)]
        self.outers = [outer([center]) for center in self.centers]
        self._moving = []  # (step to apply it at, fragment, its movement, the average)

    def after_step(self) -> None:
        """Count a step, apply the average that is due, and start the next one."""
        self.steps += 1
        fragment = self.due(self.steps, self.every, len(self.centers))
        if fragment is not None:
            moved = self.centers[fragment] - self._mine()[fragment]
            average = self.comm.start(ring_all_reduce, moved, op=AVERAGE)
            self._moving.append((self.steps + self.delay, fragment, moved, average))
        while self._moving and self._moving[0][0] <= self.steps:
            self._apply(*self._moving.pop(0)[1:])

    def _apply(self, fragment, moved, average):
        average.wait()
        center, parts = self.centers[fragment], list(self._mine())
        center.grad = moved
        self.outers[fragment].step()
        center.grad = None
        parts[fragment] = center.lerp(parts[fragment], self.mix)
        vector_to_parameters(torch.cat(parts), self.module.parameters())

    def _mine(self):
        flat = parameters_to_vector(self.module.parameters()).detach()
        return flat.tensor_split(len(self.centers))
