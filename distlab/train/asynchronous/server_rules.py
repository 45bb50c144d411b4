"""Rules of a parameter server for its workers' pushes: state machines without messages.

    push(worker, version, values)  ─▶  the workers to answer now
    leave(worker)                  ─▶  the same, for a worker that sends no more

    version    0      1      2      3
    worker 1   ├──────▶                       computed on 0, applied to 0: age 0
    worker 2   ├─────────────▶                computed on 0, applied to 1: age 1
    worker 3   ├────────────────────▶         computed on 0, applied to 2: age 2

A gradient's **age** (staleness) is the number of updates between the parameters that
it was computed on and those that it is applied to. `server` sends the messages.
"""

import math
from collections.abc import Callable, Iterable

import torch

from distlab.errors import InvalidArgument

__all__ = ["Asynchronous", "ElasticAveraging", "Rule", "Synchronous"]


class Rule:
    """One server's parameters, and the workers that wait for them.

    values: flat; changed in place. version: the number of updates so far.
    workers: the participants. waiting: those that have pushed and have no answer yet.
    """

    def __init__(self, values: torch.Tensor):
        if values.dim() != 1 or not values.is_floating_point():
            raise InvalidArgument(
                "a server's parameters are one flat tensor of a floating-point type, "
                f"and got {values.dtype} of shape {list(values.shape)}. "
                "parameters_to_vector(model.parameters()).detach() makes one."
            )
        self.values, self.version = values, 0
        self.workers, self.waiting = set(), []

    def begin(self, workers: Iterable[int]) -> list[int]:
        """Start, or continue, with these workers; return them all, to be answered."""
        self.workers, self.waiting = set(workers), []
        return sorted(self.workers)

    def push(self, worker: int, version: int, values: torch.Tensor) -> list[int]:
        """Process values that a worker computed on a version; return whom to answer."""
        raise NotImplementedError

    def leave(self, worker: int) -> list[int]:
        """Continue without a worker; return the workers to answer."""
        self.workers.discard(worker)
        return []

    @property
    def answer(self) -> torch.Tensor:
        """The values that are sent to a worker."""
        return self.values

    def release(self) -> list[int]:
        """Return all waiting workers, to be answered, and clear the list."""
        ready, self.waiting = self.waiting, []
        return ready


class Asynchronous(Rule):
    """A rule that applies each gradient on arrival, with a bound on the lead.

    bound: a worker is not answered while it is more than `bound` gradients ahead of
        the slowest (stale synchronous parallel). 0 keeps all in step; without a bound
        no worker ever waits for another.
    by_age: divide the learning rate by 1 + age.
    optimizer: makes an optimizer of a list of one flat parameter.

    Source: Dean et al., "Large scale distributed deep networks" (2012); Ho et al.,
        "More effective distributed ML via a stale synchronous parallel parameter
        server" (2013); Zhang et al., "Staleness-aware async-SGD for distributed deep
        learning" (2016).
    """

    def __init__(
        self,
        values: torch.Tensor,
        optimizer: Callable,
        *,
        bound: float = math.inf,
        by_age: bool = False,
    ):
        super().__init__(values)
        if not bound >= 0:
            raise InvalidArgument(f"a bound is 0 or more, and got {bound!r}.")
        self.optimizer, self.bound, self.by_age = optimizer([values]), bound, by_age
        self.clocks = {}  # worker -> number of its gradients

    def begin(self, workers):
        """Start, or continue, with these workers, all at the same clock."""
        ready = super().begin(workers)
        self.clocks = dict.fromkeys(ready, 0)
        return ready

    def push(self, worker, version, values):
        """Apply a gradient; return the waiting workers that are within the bound."""
        age = self.version - version
        step_once(self.optimizer, values, 1 / (1 + age) if self.by_age else 1.0)
        self.version += 1
        self.clocks[worker] += 1
        self.waiting.append(worker)
        return self._within_bound()

    def leave(self, worker):
        """Continue without a worker, which may have been the slowest."""
        super().leave(worker)
        self.clocks.pop(worker, None)
        return self._within_bound()

    def _within_bound(self):
        if self.bound == math.inf:
            return self.release()
        most = min(self.clocks.values(), default=0) + self.bound
        ready = [worker for worker in self.waiting if self.clocks[worker] <= most]
        self.waiting = [worker for worker in self.waiting if worker not in ready]
        return ready


class Synchronous(Rule):
    """A rule that steps with the mean of all gradients, or of the first n - backup.

    backup: the number of gradients per step that are not waited for. They are dropped
        on arrival, and their worker continues with the newest parameters.
    dropped: the number of dropped gradients.

    Source: Chen et al., "Revisiting distributed synchronous SGD" (2016).
    """

    def __init__(self, values: torch.Tensor, optimizer: Callable, *, backup: int = 0):
        super().__init__(values)
        if type(backup) is not int or backup < 0:
            raise InvalidArgument(f"backup is a number from 0 up, and got {backup!r}.")
        self.optimizer, self.backup, self.dropped = optimizer([values]), backup, 0
        self._total, self._count = torch.zeros_like(values), 0

    def begin(self, workers):
        """Start, or continue, with these workers; a step that had begun starts again.

        Raises: InvalidArgument if there are no more workers than backups.
        """
        ready = super().begin(workers)
        if len(ready) <= self.backup:
            raise InvalidArgument(
                f"backup={self.backup} leaves none of {len(ready)} workers to wait for."
            )
        self._total.zero_()
        self._count = 0
        return ready

    def push(self, worker, version, values):
        """Accumulate a gradient, and step with the last that is waited for."""
        if version < self.version:
            self.dropped += 1
            return [worker]
        self._total += values
        self._count += 1
        self.waiting.append(worker)
        return self._step_if_complete()

    def leave(self, worker):
        """Continue without a worker, which may have been the last one."""
        super().leave(worker)
        return self._step_if_complete()

    def _step_if_complete(self):
        if not 0 < self._count >= len(self.workers) - self.backup:
            return []
        step_once(self.optimizer, self._total / self._count)
        self._total.zero_()
        self._count = 0
        self.version += 1
        return self.release()


class ElasticAveraging(Rule):
    """A rule that moves a center and each worker's own parameters towards each other.

    A worker trains by itself. Now and then it sends its parameters x, receives the old
    center c, and moves by alpha (c - x), while the center moves by alpha (x - c).

    Source: Zhang, Choromanska and LeCun, "Deep learning with elastic averaging SGD"
        (2015), algorithm 1.
    """

    def __init__(self, values: torch.Tensor, alpha: float):
        super().__init__(values)
        if not 0 < alpha <= 1:
            raise InvalidArgument(f"alpha is above 0 and up to 1, and got {alpha!r}.")
        self.alpha, self._before = alpha, values.clone()

    @property
    def answer(self):
        """The center before this worker's push."""
        return self._before

    def begin(self, workers):
        """Start, or continue, with these workers: each gets the center."""
        self._before.copy_(self.values)
        return super().begin(workers)

    def push(self, worker, version, values):
        """Move the center towards a worker's parameters; return that worker."""
        self._before.copy_(self.values)
        self.values.lerp_(values, self.alpha)
        self.version += 1
        return [worker]


def step_once(optimizer: torch.optim.Optimizer, gradient, times: float = 1.0) -> None:
    """Step with a gradient of the one parameter, and `times` the learning rate."""
    group = optimizer.param_groups[0]
    rate, group["params"][0].grad = group["lr"], gradient
    group["lr"] = rate * times
    optimizer.step()
    group["lr"] = rate
