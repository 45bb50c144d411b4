"""Data parallel training: a whole model on every rank, part of the batch, one gradient.

    rank 0   forward ▌ backward of its samples ▐ ─┐
    rank 1   forward ▌ backward of its samples ▐ ─┼─ all-reduce ─▶ the same mean
    rank 2   forward ▌ backward of its samples ▐ ─┘                 on every rank

Three versions: an all-reduce for each parameter after backward; one for each bucket of
parameters; and one for each bucket as soon as it is full, while backward continues with
the layers before it.

    model = OverlappedDataParallel(comm, model)
    loss(model(x), y).backward()
    model.average_gradients()
    optimizer.step()

Source: Li et al., "PyTorch Distributed: experiences on accelerating data parallel
training" (2020).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import nn

from distlab.collectives import AVERAGE, ring_all_reduce
from distlab.errors import InvalidArgument
from distlab.train.buckets import BUCKET_BYTES, FIRST_BUCKET_BYTES, in_buckets
from distlab.train.parameter_checksums import ParameterWatch
from distlab.train.replica_checks import (
    check_same_model,
    check_same_values,
    copy_from_rank_0,
)

__all__ = [
    "BucketedDataParallel",
    "NaiveDataParallel",
    "OverlappedDataParallel",
    "share_of_batch",
]


def share_of_batch(comm, samples: int) -> float:
    """Return the factor on a rank's mean loss that gives all samples the same weight.

    Ranks average their gradients, and so give each rank the same weight. Where batches
    differ in length, as the last one of an epoch may, a rank's loss has to count by its
    part of all samples, n times over.

    samples: this rank's number in this step; 0 is fine, if others have some.
    Raises: InvalidArgument if no rank has any.
    """
    total = torch.tensor([float(samples)], dtype=torch.float64, device=comm.device)
    ring_all_reduce(comm, total)
    if not total.item() > 0:
        raise InvalidArgument("no rank has a sample in this step.")
    return samples * comm.world_size / total.item()


class NaiveDataParallel(nn.Module):
    """A model whose gradients are averaged after backward, one parameter at a time.

    comm: this rank's Comm. module: the same on every rank; rank 0's values are copied.
    all_reduce: a function of (comm, tensor, op=AVERAGE) that works in place.

    Raises: InvalidArgument, on every rank, naming the first parameter that differs in
        name, shape or type between ranks.
    Cost: an all-reduce per parameter, 2(n-1)/n times the gradients' bytes per rank.
    """

    def __init__(
        self, comm, module: nn.Module, *, all_reduce: Callable = ring_all_reduce
    ):
        super().__init__()
        self.comm, self.module = comm, module
        self.all_reduce = all_reduce
        self.synchronizes = True
        check_same_model(comm, module)
        copy_from_rank_0(comm, module)
        self.parameters_with_gradient = [
            parameter for parameter in module.parameters() if parameter.requires_grad
        ]
        names = {p: [(name, 0)] for name, p in module.named_parameters()}
        self.watch = ParameterWatch(comm, names)

    def forward(self, *args, **kwargs):
        """Call the module."""
        return self.module(*args, **kwargs)

    def average_gradients(self) -> None:
        """Replace every gradient by its mean over all ranks; call it after backward."""
        if not self.synchronizes:
            return
        for parameter in reversed(self.parameters_with_gradient):
            gradient = gradient_of(parameter)
            self.all_reduce(self.comm, gradient, op=AVERAGE)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Accumulate gradients without averaging; the next step averages the sum."""
        self.synchronizes = False
        try:
            yield
        finally:
            self.synchronizes = True

    def accept_changes(self) -> None:
        """Accept values that were loaded into the module, on all ranks.

        Raises: InvalidArgument on every rank if they are not the same on all.
        """
        check_same_values(self.comm, self.module)
        self.watch.forget()


class BucketedDataParallel(NaiveDataParallel):
    """The same with gradients packed into buckets: few all-reduces, and long ones.

    Buckets are filled in reverse order of registration, which is about the order in
    which backward finishes gradients. The first is small, so that it is full early.

    first_bytes, bucket_bytes: sizes at which the first bucket, and each other, ends.
    hook: a function of (comm, bucket) that averages the bucket's buffer in place; None
        is an all-reduce. One made for PyTorch's DDP with `comm` as its state fits.
    Cost: an all-reduce per bucket; the bytes are those of `NaiveDataParallel`.
    """

    def __init__(
        self,
        comm,
        module: nn.Module,
        *,
        first_bytes: int = FIRST_BUCKET_BYTES,
        bucket_bytes: int = BUCKET_BYTES,
        all_reduce: Callable = ring_all_reduce,
        hook: Callable | None = None,
    ):
        super().__init__(comm, module, all_reduce=all_reduce)
        parameters = self.parameters_with_gradient
        self.buckets = in_buckets(parameters, first_bytes, bucket_bytes)
        self.hook = hook or self._average
        for bucket in self.buckets:
            bucket.names = {p: name for name, p in module.named_parameters()}

    def average_gradients(self) -> None:
        """Replace every gradient by its mean over all ranks; call it after backward."""
        if not self.synchronizes:
            return
        for bucket in self.buckets:
            bucket.take_in()
            self.hook(self.comm, bucket)
            bucket.hand_out()

    def _average(self, comm, bucket):
        self.all_reduce(comm, bucket.buffer(), op=AVERAGE)


class OverlappedDataParallel(BucketedDataParallel):
    """The same during backward: a bucket is reduced as soon as it is full.

    A hook on each parameter records its gradient as computed. Buckets start in their
    order, also if a later one is full first, so that all ranks make the same calls.

    unused: the treatment of a parameter that has no gradient after backward. "error"
        raises, since on one rank only it would be a mistake that stalls the others;
        "zero" counts it as zero.
    Raises: InvalidArgument in `average_gradients`, for a parameter without a gradient.
    """

    def __init__(self, comm, module: nn.Module, *, unused: str = "error", **options):
        super().__init__(comm, module, **options)
        if unused not in ("error", "zero"):
            raise InvalidArgument(f'unused is "error" or "zero", and got {unused!r}.')
        self.unused = unused
        self._of = {p: bucket for bucket in self.buckets for p in bucket.parameters()}
        for parameter in self._of:
            parameter.register_post_accumulate_grad_hook(self._is_ready)
        self._begin_step()

    def average_gradients(self) -> None:
        """Wait for the started buckets; start those that are not full, or raise."""
        if not self.synchronizes:
            return
        missing = [p for bucket in self.buckets for p in bucket.missing]
        if missing and self.unused == "error":
            self._begin_step()
            raise InvalidArgument(self._described(missing))
        self._start(self.buckets[len(self._requests) :])
        for bucket, request in zip(self.buckets, self._requests, strict=True):
            request.wait()
            bucket.hand_out()
        self._begin_step()

    def _begin_step(self):
        self._requests = []
        for bucket in self.buckets:
            bucket.missing = set(bucket.parameters())

    def _is_ready(self, parameter):
        if not self.synchronizes:
            return
        bucket = self._of[parameter]
        if parameter not in bucket.missing:
            raise InvalidArgument(
                "backward ran twice in one step, and buckets of the first are on their "
                "way. Put all but the last backward of a step into `with no_sync():`."
            )
        bucket.missing.discard(parameter)
        waiting = self.buckets[len(self._requests) :]
        full = next((k for k, b in enumerate(waiting) if b.missing), len(waiting))
        self._start(waiting[:full])

    def _start(self, buckets):
        for bucket in buckets:
            bucket.take_in()
            self._requests.append(self.comm.start(self.hook, bucket))

    def _described(self, missing):
        names = {id(p): name for name, p in self.module.named_parameters()}
        listed = ", ".join(names[id(parameter)] for parameter in missing)
        return (
            f"rank {self.comm.rank} has no gradient for {listed}: the loss of this "
            "step does not depend on it. If that is as it should be, pass "
            'unused="zero" on all ranks, or freeze it with requires_grad_(False).'
        )


def gradient_of(parameter: nn.Parameter) -> torch.Tensor:
    """Return a parameter's gradient, made of zeros if there is none."""
    if parameter.grad is None:
        parameter.grad = torch.zeros_like(parameter)
    return parameter.grad
