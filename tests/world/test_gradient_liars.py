"""Answers to exercise 11 that cheat get no more than their honest part."""

import contextlib
import gc
import json
import os
import pickle
import sys
import threading
from functools import partial
from itertools import chain

import cloudpickle
import pytest
import torch
from right_gradients import Overlap, average, flat, hand_out

from distlab.calls.travel import Packed
from distlab.grading import (
    AccumulatedGradients,
    AveragedGradients,
    OverlappedGradients,
    salt,
)
from distlab.grading.gradients.gates import Gate, gate
from distlab.grading.gradients.trained import made, mean_loss, with_gates
from distlab.grading.gradients.truth import Truth
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


class AsksByHand(Overlap):
    """Calls each function of the check for its gradient, and runs no backward.

    It goes along the graph from function to function, with a slope of ones for each.
    """

    def go_back(self, weighed):
        self.missing = dict.fromkeys(self.missing, len(weighed))
        for forward, weight in weighed:
            for p, gradient in asked_by_hand(forward().grad_fn):
                if p in self.missing:
                    self.add(p, gradient * weight)


def asked_by_hand(node):
    """Yield parameters, and what the function before each says of its gradient."""
    waiting = [node]
    while waiting:
        node = waiting.pop(0)
        following = [one for one, _ in node.next_functions]
        if hasattr(node, "_forward_cls"):
            shape = tuple(node._input_metadata[0].shape)
            given = node.apply(torch.ones(shape, dtype=torch.double))
            pairs = zip(following, given, strict=False)
            yield from ((f.variable, g) for f, g in pairs if hasattr(f, "variable"))
        waiting += [one for one in following if one is not None]


class HooksAfterwards(Overlap):
    """Runs backward, and then passes each gate once more while it starts buckets."""

    def go_back(self, weighed):
        training, passed = probe(), []
        ask = type(training)._factors.__get__(training)

        def factors(number, place, slope):
            passed.append((number, place, slope))
            return ask(self.called(number, weighed), place, slope)

        training._factors = factors
        self.run(weighed)
        self.missing = dict.fromkeys(self.missing, 1)
        for p in chain(*self.buckets):
            if passed:
                ask(*passed.pop(0))
            self.arrived(p)

    def called(self, number, weighed):
        return number

    def run(self, weighed):
        for forward, weight in weighed:
            (forward() * weight).backward()


class CountsFromTheEnd(HooksAfterwards):
    """Does the same; the first time a microbatch is called -1, -2 and so on."""

    def called(self, number, weighed):
        return number - len(weighed)


class OnTheSide(HooksAfterwards):
    """Does the same; the first time is in a thread, before anything is started."""

    def run(self, weighed):
        side = threading.Thread(target=super().run, args=[weighed])
        side.start()
        side.join()


class RemembersTheGates(Overlap):
    """Asks at each gate in the first step, and has the same factors in the next."""

    def go_back(self, weighed):
        training = probe()
        ask = type(training)._factors.__get__(training)
        first = "kept" not in vars(training)
        kept = vars(training).setdefault("kept", {})

        def factors(number, place, slope):
            if first:
                kept[number, place] = ask(number, place, slope)
            found = kept.get((number, place), torch.ones_like(slope))
            return found[: len(slope)] if len(slope) <= len(found) else 1

        training._factors = factors
        super().go_back(weighed)


class GoesAroundTheGates(Overlap):
    """Goes back through the model without gates, where nothing is asked."""

    def go_back(self, weighed):
        probe()._factors = lambda number, place, slope: torch.ones_like(slope)
        super().go_back(weighed)


class LooksForTheGates(Overlap):
    """Takes factors from what it finds in its memory, and asks if there are none."""

    def go_back(self, weighed):
        things = [thing for thing in gc.get_objects() if type(thing) is Gate]
        training = probe()
        if things:
            training._factors = lambda number, place, slope: things[place].factors
        for forward, weight in weighed:
            (forward() * weight).backward()


class AsksWithOnes(Overlap):
    """Asks at each gate with a slope that it has made up."""

    def go_back(self, weighed):
        training = probe()
        ask = type(training)._factors.__get__(training)
        training._factors = lambda *at: ask(*at[:2], self.made_up(at[2]))
        super().go_back(weighed)

    def made_up(self, slope):
        return torch.ones_like(slope)


class AsksWithZeros(AsksWithOnes):
    def made_up(self, slope):
        return torch.zeros_like(slope)


class AsksWithAnothers(AsksWithOnes):
    """Asks with the slope that another rank has, which has sent it."""

    def made_up(self, slope):
        own, there = torch.zeros(64, dtype=torch.double), self.comm.rank ^ 1
        own[: slope.numel()] = slope.flatten()
        if there:
            self.comm.send_object(own.tolist(), there)
        other = torch.tensor(self.comm.recv_object(there), dtype=torch.double)
        if not there:
            self.comm.send_object(own.tolist(), there)
        return other[: slope.numel()].view_as(slope)


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


REFUSED = "Only backward knows the slope"
OVERLAPPED = [
    (AsksByHand, REFUSED),
    (AsksWithOnes, REFUSED),
    (AsksWithZeros, "A bucket is full when"),
    (AsksWithAnothers, REFUSED),
    (GoesAroundTheGates, "A bucket is full when"),
    (RemembersTheGates, "A bucket is full when"),
    (LooksForTheGates, "What could be started there"),
    (HooksAfterwards, "What could be started there"),
    (OnTheSide, "What could be started there"),
    (CountsFromTheEnd, "The message above names the rank"),
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


def gone_back(witness, rank, number):
    """Run backward as a rank would; return its model and what was asked, in order."""
    name, _ = witness.hear(rank, 0, "begin")
    model, places, asked = made(name), iter(range(99)), []

    def factors(place, slope):
        asked.append((number, place, slope.flatten().tolist()))
        told = witness.hear(rank, 0, "gate", *asked[-1])
        return torch.tensor(told, dtype=slope.dtype).view_as(slope)

    with_gates(model, lambda x, _: gate(x, partial(factors, next(places))))
    samples = witness.hear(rank, 0, "microbatch", number)
    mean_loss(model, torch.tensor(samples, dtype=torch.double)).backward()
    return model, asked


def test_a_rank_is_told_its_own_factors_and_no_sum_before_all_are_in_it():
    witness = Witness("layers", [[[2], [3]]])
    sent = {}
    for rank in range(2):
        assert witness.hear(rank, 0, "step")[:2] == ([2 + rank], 5)
        model, _ = gone_back(witness, rank, 0)
        sent[rank] = model[8].bias.grad.tolist()
        number = witness.hear(rank, 0, "reduce", "start", "float64", sent[rank])
        witness.hear(rank, 0, "enters", number)
        if rank == 0:
            with pytest.raises(LookupError):
                witness.hear(0, 0, "sum", number)
    assert sent[0] != sent[1]
    total = [a + b for a, b in zip(sent[0], sent[1], strict=True)]
    assert witness.hear(0, 0, "sum", 0) == pytest.approx(total)


@pytest.mark.parametrize("model", ["layers", "tied", "types", "experts"])
def test_no_gate_opens_for_another_slope_than_its_own(model):
    counts = [[[4, 4], [4]]]
    other, witness = (Witness(model, counts, looks_inside=True) for _ in range(2))
    passed = []
    for rank, own in enumerate(counts[0]):
        other.hear(rank, 0, "step")
        witness.hear(rank, 0, "step")
        for number in range(len(own)):
            passed += [(rank, *asked) for asked in gone_back(other, rank, number)[1]]
    for rank, number, place, right in passed:
        slopes = [slope for _, _, _, slope in passed if slope != right]
        for slope in [*slopes, [1.0] * len(right), [float("nan")] * len(right)]:
            with pytest.raises((ValueError, RuntimeError)):
                witness.hear(rank, 0, "gate", number, place, slope)
        zeros = witness.hear(rank, 0, "gate", number, place, [0.0] * len(right))
        assert not any(zeros)
    assert not any(note.kind == "gradient" for own in witness.notes for note in own)
    for rank, *asked in passed:
        witness.hear(rank, 0, "gate", *asked)
    assert witness.notes == [
        [note for note in own if note.kind != "microbatch"] for own in other.notes
    ]


@pytest.mark.parametrize("model", ["layers", "tied", "types", "experts"])
def test_with_factors_of_one_the_truth_is_what_torch_has(model, monkeypatch):
    like = torch.ones_like
    monkeypatch.setattr("distlab.grading.gradients.truth.drawn", lambda t, _: like(t))
    truth = Truth(model, [[[3, 2], [], [4]]])
    (step,), plain = truth.steps, made(model)
    samples = torch.cat([batch.samples for own in step.batches for batch in own])
    mean_loss(plain, samples).backward()
    for name, p in plain.named_parameters():
        if p.requires_grad:
            right = torch.zeros_like(p) if p.grad is None else p.grad
            torch.testing.assert_close(step.gradients[name], right)


def test_another_salt_has_other_numbers_and_the_same_layout(salted):
    told = []
    for _ in range(2):
        salt.new_salt()
        witness = Witness("layers", [[[2]]])
        witness.hear(0, 0, "step")
        told.append((gone_back(witness, 0, 0)[1][-1], witness.buckets))
    assert told[0][0] != told[1][0] and told[0][1] == told[1][1]


def test_two_checks_with_one_salt_have_other_factors(salted):
    passed = []
    for _ in range(2):
        witness = Witness("layers", [[[2]]])
        witness.hear(0, 0, "step")
        passed.append(gone_back(witness, 0, 0)[1])
    assert passed[0][0] == passed[1][0] and passed[0][1:] != passed[1][1:]
