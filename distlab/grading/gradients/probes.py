"""What a rank does while gradients are checked: steps of training, on what it is told.

The rank has a model and its own samples. At each gate backward asks the check how to go
on, so the check knows how far each rank's backward is. What is right, and what other
ranks have, is known to the check alone.
"""

from collections.abc import Iterator
from functools import partial
from itertools import chain, count

import torch

from distlab.grading.calling import called
from distlab.grading.gradients import layout
from distlab.grading.gradients.gates import gate
from distlab.grading.gradients.trained import made, mean_loss, with_gates
from distlab.grading.gradients.watched_ring import WatchedRing, own_ring
from distlab.grading.probes import lock, lock_the_library, shown
from distlab.train import buckets, data_parallel, fsdp, horovod, zero

__all__ = ["PROBES"]

_RATE = 0.1


class _Training:
    """The learner's parameters on this rank, and the check that is told of them.

    parameters: by name. given: the limits, or the names in each bucket.
    """

    def __init__(self, comm, steps):
        ring = own_ring()
        lock_the_library()
        lock([buckets, data_parallel, fsdp, horovod, zero, layout], _refuse)
        self.comm, self._steps = WatchedRing(comm, ring), steps
        model, self.given = self.comm.tell("begin")
        self._model = made(model)
        self.parameters = dict(self._model.named_parameters())
        self.trained = {n: p for n, p in self.parameters.items() if p.requires_grad}
        torch.manual_seed(1000 + comm.rank)

    def steps(self) -> Iterator[None]:
        """Let the body of a loop be each step; tell what it made of the gradients."""
        for _ in range(self._steps):
            self._counts, self._total, parameters = self.comm.tell("step")
            for name, p in self.parameters.items():
                p.grad = None
                _set(p, parameters[name])
            yield
            # One hook of each is this probe's, if it has any at all.
            left = [n for n, p in self.trained.items() if _hooks(p)]
            gradients = {n: _numbers(p.grad) for n, p in self.trained.items()}
            _descend(self.trained.values())
            parameters = {n: _numbers(p) for n, p in self.parameters.items()}
            self.comm.tell("end", gradients, parameters, left)

    def step_with(self, function) -> None:
        """Have the learner's function take one step on this rank's microbatches."""
        microbatches = [(self.forward(k), n) for k, n in enumerate(self._counts)]
        given = [[self.parameters[n] for n in names] for names in self.given]
        all_reduce = self.comm.all_reduce
        called(function, self.comm, microbatches, self._total, given, all_reduce)

    def forward(self, number):
        """Return a function that returns the loss of this microbatch."""

        def forward():
            samples = self.comm.tell("microbatch", number)
            places = count()
            with_gates(
                self._model,
                lambda x, _: gate(x, partial(self._factors, number, next(places))),
            )
            return mean_loss(self._model, torch.tensor(samples, dtype=torch.float64))

        return forward

    def _factors(self, number, place, slope):
        numbers = self.comm.tell("gate", number, place, _numbers(slope))
        return torch.tensor(numbers, dtype=slope.dtype).view_as(slope)


@torch.no_grad()
def _set(parameter, numbers):
    """Let a parameter have these numbers."""
    numbers = torch.tensor(numbers, dtype=torch.double)
    parameter.copy_(numbers.view_as(parameter))


def _numbers(tensor):
    return None if tensor is None else tensor.detach().flatten().tolist()


def _hooks(parameter):
    return bool(parameter._post_accumulate_grad_hooks)


@torch.no_grad()
def _descend(parameters):
    for parameter in parameters:
        if parameter.grad is not None:
            parameter -= _RATE * parameter.grad


def averaged(comm, functions, steps) -> None:
    """Have the learner lay buckets out, and average gradients in them."""
    in_buckets, average = functions
    training = _Training(comm, steps)
    parameters = list(training.parameters.values())
    given = [list(parameters) for _ in training.given]
    pairs = zip(given, training.given, strict=True)
    held = [in_buckets(own, *limit) for own, limit in pairs]
    changed = any(list(map(id, own)) != list(map(id, parameters)) for own in given)
    yours = _named(held, training.parameters)
    if training.comm.tell("layout", yours, changed, shown(held[0])):
        for _ in training.steps():
            training.forward(0)().backward()
            average(training.comm, held[0], training.comm.all_reduce)


def _named(held, parameters):
    """Return the names in each bucket; None if these are no lists of parameters."""
    name_of = {id(p): name for name, p in parameters.items()}
    if not all(isinstance(one, list | tuple) for one in held):
        return None
    buckets = list(chain(*held))
    if not all(isinstance(bucket, list | tuple) for bucket in buckets):
        return None
    if not all(id(p) in name_of for p in chain(*buckets)):
        return None
    return [[[name_of[id(p)] for p in bucket] for bucket in one] for one in held]


def accumulated(comm, function, steps) -> None:
    """Have the learner's function take steps, of more microbatches or less."""
    training = _Training(comm, steps)
    for _ in training.steps():
        training.step_with(function)


PROBES = {
    "averaged": averaged,
    "accumulated": accumulated,
    "overlapped": accumulated,
}


def _refuse(*args, **options):
    raise NotImplementedError(
        "this exercise asks for your own; distlab's training is locked here"
    )
