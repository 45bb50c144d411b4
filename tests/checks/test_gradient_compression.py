"""Exercise 16: what no variant shows, and its oracle beside the library's hook."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from distlab import run
from distlab.checks import gradient_compression as checks
from distlab.checks.kit.grading import judge
from distlab.collectives import ring_all_gather
from distlab.train.buckets import Bucket
from distlab.train.compression import Compressed, TopK


class LongBucketsOnly:
    """Averages buckets of the lengths that are checked apart, and no other."""

    def __init__(self, density):
        self.density = density

    def __call__(self, comm, bucket):
        flat = bucket.buffer()
        indices = flat.nonzero().flatten()
        if len(flat) in (10, *range(50_000, 70_001)) and len(indices):
            total = sum(ring_all_gather(comm, flat[indices]))
            flat[indices] = total / comm.world_size


def test_ranks_that_do_not_agree_on_their_parameters_do_not_pass():
    functions = LongBucketsOnly, lambda *budget: 0.01 if budget[0] else None
    verdict = judge(checks.efficient, functions, (2, 8))
    assert "different parameters" in str(verdict)


class NamesItself:
    """Sends whole gradients, looks at all, and raises on each rank in its own name."""

    def __init__(self, density):
        self.density, self.errors = density, {}

    def __call__(self, comm, bucket):
        flat, key = bucket.buffer(), tuple(bucket.parameters())
        whole = flat + self.errors.get(key, 0)
        sent, indices = torch.zeros_like(whole), whole.abs().argsort(descending=True)
        kept = indices[: checks.kept(self.density, len(flat))]
        sent[kept] = whole[kept]
        all_sent = ring_all_gather(comm, sent)
        if not all(each.isfinite().all() for each in all_sent):
            raise ValueError(f"rank {comm.rank} has a NaN")
        self.errors[key] = whole - sent
        flat.copy_(sum(all_sent) / comm.world_size)


def test_each_rank_has_to_name_the_one_with_the_nan():
    verdict = judge(checks.remembered, NamesItself, (2, 0.2))
    assert "Every rank looks at all codes" in " ".join(str(verdict).split())


def _library(comm, density, own):
    parameters = [nn.Parameter(torch.zeros(len(p))) for p in checks.PARAMETERS]
    hooks, means = [Compressed(TopK(density)), Compressed(TopK(density))], []
    for about, gradient in zip(checks.PLAN, own, strict=True):
        for group in checks._groups(about):
            bucket = Bucket([parameters[p] for p in group])
            bucket.buffer()[:] = torch.tensor(gradient)[checks._elements(group)]
            hooks[about == "a second hook"](comm, bucket)
            means.append(bucket.buffer().tolist())
    return means


def test_the_oracle_says_what_the_librarys_hook_does():
    draw = np.random.default_rng(0)
    own = draw.integers(-(10**6), 10**6, (2, len(checks.PLAN), 30)).astype(float)
    right, each = checks._remembering(0.2, own), [(o,) for o in own.tolist()]
    means = run(_library, 2, args=(0.2,), own_args=each).results[0]
    for (where, _, expected), mean in zip(right, means, strict=True):
        assert mean == pytest.approx(expected, abs=1), where


def test_a_step_with_a_nan_leaves_no_trace_in_the_oracle():
    with_nan = np.array([[checks._distinct(30) for _ in checks.PLAN]], float)
    without = with_nan.copy()
    with_nan[0, 5], without[0, 5] = math.nan, 0
    refused = checks._remembering(1.0, with_nan)
    after = checks._remembering(1.0, without)
    assert [mean is None for *_, mean in refused] == [10 <= i < 12 for i in range(22)]
    assert all(
        (a[2] == b[2]).all() for a, b in zip(refused[12:], after[12:], strict=True)
    )
