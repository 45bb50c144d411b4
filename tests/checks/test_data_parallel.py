"""What the proof of exercise 11 does not show: other ways to gradients, and limits."""

from itertools import chain

import pytest
import torch

from distlab.checks import data_parallel as checks
from distlab.checks.kit.grading import judge


class Overlap:
    """A right step 3; others differ in `go_back`, or in a mistake."""

    def __call__(self, comm, microbatches, total, buckets, all_reduce):
        self.comm, self.buckets, self.all_reduce = comm, buckets, all_reduce
        self.under_way, self.each = [], list(chain(*buckets))
        self.go_back([(f, n * comm.world_size / total) for f, n in microbatches])
        self.missing = dict.fromkeys(self.each, 0)
        self.start_full()
        for bucket, buffer, request in self.under_way:
            request.wait()
            pieces = buffer.split([p.numel() for p in bucket])
            for p, piece in zip(bucket, pieces, strict=True):
                p.grad = (piece / comm.world_size).view_as(p)

    def go_back(self, weighed):
        self.missing = dict.fromkeys(self.each, len(weighed))
        hooks = [p.register_post_accumulate_grad_hook(self.arrived) for p in self.each]
        for forward, weight in weighed:
            (forward() * weight).backward()
        for hook in hooks:
            hook.remove()

    def arrived(self, p):
        self.missing[p] -= 1
        self.start_full()

    def start_full(self):
        for bucket in self.buckets[len(self.under_way) :]:
            if any(self.missing[p] for p in bucket):
                break
            grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in bucket]
            buffer = torch.cat([gradient.flatten() for gradient in grads])
            request = self.comm.start(self.all_reduce, buffer)
            self.under_way.append((bucket, buffer, request))


class AllForwardsFirst(Overlap):
    def go_back(self, weighed):
        losses = [forward() * weight for forward, weight in weighed]
        super().go_back([(losses.pop, 1) for _ in weighed])


class WaitsInside(Overlap):
    def start_full(self):
        before = len(self.under_way)
        super().start_full()
        for *_, request in self.under_way[before:]:
            request.wait()


def test_all_forwards_before_the_first_backward_are_right():
    verdict = judge(checks.overlapped, AllForwardsFirst(), (3, "experts"))
    assert verdict.outcome == "pass", verdict


def test_a_wait_in_backward_is_out_of_turn():
    verdict = judge(checks.overlapped, WaitsInside(), (2, "tied"))
    assert "no wait before the last start, yours: for bucket 0" in verdict.found
    assert "Inside of a hook nothing may wait" in verdict.hints[0]


@pytest.mark.parametrize("name", checks.SIZES)
def test_no_two_buckets_of_a_model_are_equally_long(name):
    parameters = [*checks.ChainModel(name).parameters()]
    buckets = checks.in_buckets(parameters, *checks.SIZES[name][1])
    sizes = [(sum(p.numel() for p in b), b[0].dtype) for b in buckets]
    assert len(sizes) > 2 and len({*sizes}) == len(sizes)
