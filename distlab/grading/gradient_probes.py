"""What a rank does while gradients are checked: steps of training, beside the whole.

Every rank has the learner's model, and another one that it trains alone on the samples
of all ranks. After each step the gradients of the two are compared, and at the end the
parameters.
"""

from collections.abc import Iterator
from itertools import chain

import torch

from distlab.grading.gradient_likeness import alike, first_difference, is_exact
from distlab.grading.layout import just_reached, laid_out
from distlab.grading.notes import Difference, note
from distlab.grading.probes import lock, lock_the_library, shown
from distlab.grading.trained import LIMITS, made, mean_loss, microbatch, rows_of
from distlab.grading.watched_ring import Expected, WatchedRing, own_ring
from distlab.train import buckets, data_parallel, fsdp, horovod, zero

__all__ = ["PROBES"]

_RATE = 0.1


class _Training:
    """The learner's model on this rank, one that is trained alone, and their data.

    counts: for each step, rank and microbatch how many samples.
    """

    def __init__(self, comm, name, counts, *, looks_inside=False):
        ring = own_ring()
        lock_the_library()
        lock([buckets, data_parallel, fsdp, horovod, zero], _refuse)
        self.comm, self.counts = WatchedRing(comm, ring), counts
        self.model, self.whole = made(name), made(name)
        self.rows = rows_of(self.model)
        self.parameters = dict(self.model.named_parameters())
        names = laid_out(self.rows, *LIMITS[name])
        self.buckets = [[self.parameters[n] for n in bucket] for bucket in names]
        self.names, self._looks_inside = names, looks_inside
        self.difference = None
        for bucket in names:
            note(comm, "bucket", *bucket)
        torch.manual_seed(1000 + comm.rank)

    def steps(self) -> Iterator[list[torch.Tensor]]:
        """Yield this rank's microbatches of each step; then compare, and go on."""
        for step, counts in enumerate(self.counts):
            batches = [
                [microbatch(step, rank, k, count) for k, count in enumerate(own)]
                for rank, own in enumerate(counts)
            ]
            self.total = sum(map(sum, counts))
            self.model.zero_grad()
            mine = batches[self.comm.rank]
            self._expect(mine)
            note(self.comm, "step")
            yield mine
            note(self.comm, "end")
            self._train_alone(torch.cat([x for own in batches for x in own]))
            self._compare(step, batches)

    def step_with(self, function, mine) -> None:
        """Have the learner's function take one step on these microbatches."""
        microbatches = [(self._forward(k, x), len(x)) for k, x in enumerate(mine)]
        function(
            self.comm, microbatches, self.total, self.buckets, self.comm.all_reduce
        )

    def _forward(self, number, x):
        def forward():
            note(self.comm, "microbatch", f"{number}")
            return mean_loss(self.model, x)

        return forward

    def result(self, **more) -> dict:
        """Return what the check compares."""
        size = sum(row.bytes for row in self.rows if not row.frozen)
        return {"bytes": size, "difference": self.difference} | more

    def _expect(self, mine):
        final = self._final(mine) if self._looks_inside else None
        self.comm.expect(
            [
                Expected(
                    names,
                    [self.parameters[n] for n in names],
                    final and [final[n] for n in names],
                )
                for names in self.names
            ]
        )

    def _final(self, mine):
        """Return by name this rank's gradient of all its microbatches, in two ways.

        With a weight for every sample, and with a weight for every microbatch: that is
        whole too, and what is wrong with it is seen in the gradients.
        """
        trained = {n: p for n, p in self.parameters.items() if p.requires_grad}
        total = {n: [torch.zeros_like(p) for _ in "ab"] for n, p in trained.items()}
        for x in mine:
            loss = mean_loss(self.model, x)
            found = torch.autograd.grad(loss, trained.values(), materialize_grads=True)
            for (by_sample, by_batch), gradient in zip(
                total.values(), found, strict=True
            ):
                by_sample += gradient * len(x)
                by_batch += gradient
        return total

    def _train_alone(self, x):
        self.whole.zero_grad()
        mean_loss(self.whole, x).backward()

    def _compare(self, step, batches):
        """Keep the first difference: of gradients, or of parameters after the step."""
        found = first_difference(self.model, self.whole, self.comm.rank, step, batches)
        _descend(self.whole)
        _descend(self.model)
        self.difference = self.difference or found or self._parameters_differ(step)

    def _parameters_differ(self, step):
        theirs = dict(self.whole.named_parameters())
        for name, parameter in self.parameters.items():
            right = theirs[name]
            if not alike(parameter, right, is_exact(self.model)):
                place = (parameter - right).abs().argmax().item()
                pair = right.flatten()[place].item(), parameter.flatten()[place].item()
                return Difference(step, name, place, *pair, "parameter")
        return None


def averaged(comm, functions, name, counts) -> dict:
    """Return how the learner lays buckets out, and what averaging them makes."""
    in_buckets, average = functions
    training = _Training(comm, name, counts)
    parameters = list(training.model.parameters())
    limits = [LIMITS[name], (1, 1), (10**6, 10**6)]
    limits.append(just_reached(training.rows, *LIMITS[name]))
    given = [list(parameters) for _ in limits]
    held = [in_buckets(own, *limit) for own, limit in zip(given, limits, strict=True)]
    laid = {"rows": training.rows, "limits": limits, "shown": shown(held[0])}
    laid["changed"] = any(
        list(map(id, own)) != list(map(id, parameters)) for own in given
    )
    laid["yours"] = _named(held, training.parameters)
    if laid["yours"] == [laid_out(training.rows, *limit) for limit in limits]:
        for (x,) in training.steps():
            mean_loss(training.model, x).backward()
            average(training.comm, held[0], training.comm.all_reduce)
    return training.result(**laid)


def _named(held, parameters):
    """Return the names in each bucket; None if these are no lists of parameters."""
    name_of = {id(p): name for name, p in parameters.items()}
    if not all(isinstance(one, list) for one in held):
        return None
    buckets = list(chain(*held))
    if not all(isinstance(bucket, list | tuple) for bucket in buckets):
        return None
    if not all(id(p) in name_of for p in chain(*buckets)):
        return None
    return [[[name_of[id(p)] for p in bucket] for bucket in one] for one in held]


def accumulated(comm, function, name, counts) -> dict:
    """Return what several microbatches make, on ranks with more of them or less."""
    training = _Training(comm, name, counts)
    for mine in training.steps():
        training.step_with(function, mine)
    return training.result()


def overlapped(comm, function, name, counts) -> dict:
    """Return the same for what is started from hooks; the notes say when."""
    training = _Training(comm, name, counts, looks_inside=True)
    trained = {n: p for n, p in training.parameters.items() if p.requires_grad}
    for parameter_name, parameter in trained.items():
        parameter.register_post_accumulate_grad_hook(
            lambda p, n=parameter_name: note(comm, "gradient", n)
        )
    for mine in training.steps():
        training.step_with(function, mine)
        for parameter_name, parameter in trained.items():
            if len(parameter._post_accumulate_grad_hooks) > 1:  # one is this probe's
                note(comm, "left", parameter_name)
    return training.result()


PROBES = {
    "averaged": averaged,
    "accumulated": accumulated,
    "overlapped": overlapped,
}


@torch.no_grad()
def _descend(model):
    for parameter in model.parameters():
        if parameter.requires_grad and parameter.grad is not None:
            parameter -= _RATE * parameter.grad


def _refuse(*args, **options):
    raise NotImplementedError(
        "this exercise asks for your own; distlab's training is locked here"
    )
