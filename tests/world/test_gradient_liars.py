"""Answers to exercise 11 that cheat get no more than their honest part."""

import contextlib
import json
import os
import pickle
import sys
from itertools import chain

import cloudpickle
import pytest
import torch
from right_gradients import average, flat, hand_out

from distlab.calls.travel import Packed
from distlab.grading import (
    AccumulatedGradients,
    AveragedGradients,
    OverlappedGradients,
    salt,
)
from distlab.grading.gradients.witness import Witness


def accumulate(comm, microbatches, total, buckets, all_reduce):
    for forward, count in microbatches:
        (forward() * count * comm.world_size / total).backward()
    average(comm, buckets, all_reduce)


def probe():
    """Return the probe's own variables, from the frames above."""
    frame = sys._getframe()
    while "training" not in frame.f_locals:
        frame = frame.f_back
    return frame.f_locals["training"]


# ---- each of these is wrong, and says that it is right -----------------------------


def leaves_with_success(comm, *_):
    os._exit(0)


def leaves_the_probe(comm, *_):
    """Returns to whoever called the probe, as if training had ended."""
    raise SystemExit(0)


def says_it_has_returned(comm, microbatches, total, buckets, all_reduce):
    """Sends, in its second step, what a rank sends when its function has returned."""
    training = probe()
    if hasattr(training, "stepped"):
        said = json.dumps({"outcome": "returned"}).encode()
        comm._line._send(b"=" + said + b"\n" + pickle.dumps(None))
    training.stepped = True
    accumulate(comm, microbatches, total, buckets, all_reduce)


def numbers_are_what_it_says(comm, microbatches, total, buckets, all_reduce):
    """Patches what reads a tensor, so that every number is the same as another."""
    accumulate(comm, microbatches, total, buckets, all_reduce)
    torch.Tensor.tolist = lambda tensor: [0.0] * tensor.numel()


def sends_nothing(comm, microbatches, total, buckets, all_reduce):
    """Has the check add up, and lets no message travel."""
    comm._ring = lambda comm, tensor: None
    for forward, count in microbatches:
        (forward() * count * comm.world_size / total).backward()
    requests = [(b, flat(b)) for b in buckets]
    for bucket, buffer in requests:
        comm.start(all_reduce, buffer).wait()
        hand_out(bucket, buffer, comm.world_size)


def is_told_at_once(comm, microbatches, total, buckets, all_reduce):
    """Asks for sums that other ranks have nothing in yet."""
    accumulate(comm, microbatches, total, buckets, all_reduce)
    comm.tell("sum", 99)


def floods(comm, *_):
    while True:
        comm.tell("reduce", "call", "", None)


def borrows_from_the_check(comm, microbatches, total, buckets, all_reduce):
    from distlab.grading.gradients.truth import Truth

    counts = [[[len(range(n)) for _, n in microbatches]] * comm.world_size]
    step = Truth("layers", counts).steps[0]
    for p, right in zip(
        chain(*buckets), reversed(step.gradients.values()), strict=True
    ):
        p.grad = right.view_as(p)


ACCUMULATED = [
    leaves_with_success,
    leaves_the_probe,
    says_it_has_returned,
    numbers_are_what_it_says,
    sends_nothing,
    is_told_at_once,
    floods,
    borrows_from_the_check,
]


@pytest.fixture
def salted():
    salt.new_salt()
    yield
    salt._salt = ""


@pytest.mark.parametrize("liar", ACCUMULATED)
def test_a_liar_does_not_pass_the_check_of_microbatches(liar, salted):
    verdict = AccumulatedGradients(liar, 2, "layers").judge()
    assert verdict.outcome == "fail", verdict


class HooksAfterwards:
    """Runs backward, and then says each gradient once more while it starts buckets."""

    def __call__(self, comm, microbatches, total, buckets, all_reduce):
        for forward, count in microbatches:
            (forward() * count * comm.world_size / total).backward()
        training, under_way = probe(), []
        name_of = {p: name for name, p in training.trained.items()}
        for bucket in buckets:
            if microbatches:
                for p in bucket:
                    comm.tell("gradient", len(microbatches) - 1, name_of[p])
            buffer = flat(bucket)
            under_way.append((bucket, buffer, comm.start(all_reduce, buffer)))
        for bucket, buffer, request in under_way:
            request.wait()
            hand_out(bucket, buffer, comm.world_size)


class SaysItHasStarted:
    """Says that buckets were started, and puts gradients into them later."""

    def __call__(self, comm, microbatches, total, buckets, all_reduce):
        requests = [comm.start(all_reduce, torch.zeros_like(flat(b))) for b in buckets]
        for forward, count in microbatches:
            (forward() * count * comm.world_size / total).backward()
        for bucket, request in zip(buckets, requests, strict=True):
            request._tensor = flat(bucket)
            request.wait()
            hand_out(bucket, flat(bucket), comm.world_size)


class WaitsUnseen:
    """Waits in its hooks, and takes care that the check is not told."""

    def __call__(self, comm, microbatches, total, buckets, all_reduce):
        missing = dict.fromkeys(chain(*buckets), len(microbatches))
        done = []

        def hook(p):
            missing[p] -= 1
            for bucket in buckets[len(done) :]:
                if any(missing[p] for p in bucket):
                    break
                start(bucket)

        def start(bucket):
            buffer = flat(bucket)
            request = comm.start(all_reduce, buffer)
            request._request.wait()
            buffer.copy_(
                torch.tensor(comm.tell("sum", request._number)).view_as(buffer)
            )
            done.append((bucket, buffer))

        hooks = [p.register_post_accumulate_grad_hook(hook) for p in missing]
        for forward, count in microbatches:
            (forward() * count * comm.world_size / total).backward()
        for each in hooks:
            each.remove()
        for bucket in buckets[len(done) :]:
            start(bucket)
        for bucket, buffer in done:
            hand_out(bucket, buffer, comm.world_size)


OVERLAPPED = [
    (HooksAfterwards, "What could be started there"),
    (SaysItHasStarted, "A bucket is full when"),
    (WaitsUnseen, "A wait inside of a hook stops backward"),
]


@pytest.mark.parametrize("liar, hint", OVERLAPPED)
def test_overlap_that_is_only_said_meets_the_hint_of_what_was_done(liar, hint, salted):
    verdict = OverlappedGradients(liar(), 2, "layers").judge()
    assert verdict.outcome == "fail" and hint in verdict.hint, verdict


class AnyLayout(list):
    """Buckets that are equal to everything."""

    def __eq__(self, other):
        return True

    def __reduce__(self):
        return os._exit, (0,)


def equal_to_everything(parameters, first_bytes, bucket_bytes):
    return AnyLayout([AnyLayout([p]) for p in parameters])


def from_the_check(parameters, first_bytes, bucket_bytes):
    from distlab.grading.gradients.layout import Row, laid_out

    rows = [
        Row(i, p.dtype, p.numel(), p.nbytes, not p.requires_grad)
        for i, p in enumerate(parameters)
    ]
    names = laid_out(rows, first_bytes, bucket_bytes)
    return [[parameters[i] for i in bucket] for bucket in names]


LAYOUTS = [
    (equal_to_everything, "A frozen parameter"),
    (from_the_check, "Borrowing is refused"),
]


@pytest.mark.parametrize("liar, hint", LAYOUTS)
def test_a_layout_that_lies_meets_the_hint_of_what_it_is(liar, hint, salted):
    verdict = AveragedGradients([liar, average], 2, "tied").judge()
    assert verdict.outcome == "fail" and hint in verdict.hint, verdict


def says_nonsense(comm, *more):
    accumulate(comm, *more)
    for said in ([], "x", ["end"], ["gradient", -1, "no"], ["sum", "1"], ["step"], 7):
        with contextlib.suppress(ValueError):
            comm.ask_at_once(said)


def test_nonsense_beside_a_right_answer_does_no_harm(salted):
    verdict = AccumulatedGradients(says_nonsense, 2, "layers").judge()
    assert verdict.outcome == "pass", verdict


def test_what_the_liars_are_made_from_is_right_also_as_bytes(salted):
    packed = Packed(cloudpickle.dumps(accumulate), "accumulate")
    for function in (accumulate, packed):
        verdict = AccumulatedGradients(function, 2, "layers").judge()
        assert verdict.outcome == "pass", verdict


# ---- what a rank can be told ----------------------------------------------------


def test_a_rank_is_told_its_own_gradients_and_no_sum_before_all_are_in_it():
    witness = Witness("layers", [[[2], [3]]])
    told = {}
    for rank in range(2):
        assert witness.hear(rank, 0, "step") == ([2 + rank], 5)
        witness.hear(rank, 0, "microbatch", 0)
        told[rank] = witness.hear(rank, 0, "gradient", 0, "8.bias")
        number = witness.hear(rank, 0, "reduce", "start", "float64", told[rank])
        witness.hear(rank, 0, "enters", number)
        if rank == 0:
            with pytest.raises(LookupError):
                witness.hear(0, 0, "sum", number)
    assert told[0] != told[1]
    total = [a + b for a, b in zip(told[0], told[1], strict=True)]
    assert witness.hear(0, 0, "sum", 0) == pytest.approx(total)


def test_another_salt_has_other_numbers_and_the_same_layout(salted):
    told = []
    for _ in range(2):
        salt.new_salt()
        witness = Witness("layers", [[[2]]])
        witness.hear(0, 0, "step")
        told.append((witness.hear(0, 0, "gradient", 0, "8.bias"), witness.buckets))
    assert told[0][0] != told[1][0] and told[0][1] == told[1][1]
