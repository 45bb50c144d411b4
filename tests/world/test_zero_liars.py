"""Answers to exercise 12 that cheat get no more than their honest part."""

import json
import os
import pickle
import sys
import time

import cloudpickle
import pytest
import torch

from distlab.calls.travel import Packed
from distlab.collectives import (
    AVERAGE,
    ring_all_gather,
    ring_all_reduce,
    ring_reduce_scatter,
)
from distlab.grading import (
    FreedLayers,
    ShardedLayers,
    ShardedOptimizer,
    WeighedLayers,
    salt,
)
from distlab.grading.zero.flat_witness import FlatWitness
from distlab.grading.zero.live_memory import LiveTensors
from distlab.grading.zero.tasks import FlatTask


@pytest.fixture
def salted():
    salt.new_salt()
    yield
    salt._salt = ""


def padded(flat, n):
    return torch.cat([flat, flat.new_zeros(-len(flat) % n)])


def own_part(comm, flat):
    return padded(flat, comm.world_size).view(comm.world_size, -1)[comm.rank].clone()


def whole(comm, part, length):
    return torch.cat(ring_all_gather(comm, part))[:length]


def mean_part(comm, gradient):
    return ring_reduce_scatter(
        comm, padded(gradient, comm.world_size), op=AVERAGE
    ).clone()


def tell_of(make_optimizer):
    """Return what the probe tells the check with."""
    return make_optimizer._tell


class Zero1:
    def __init__(self, comm, flat, make_optimizer):
        self.comm, self.flat = comm, flat
        self.part = own_part(comm, flat)
        self.optimizer = make_optimizer([self.part])

    def step(self, gradient):
        self.part.grad = mean_part(self.comm, gradient)
        self.optimizer.step()
        self.flat.copy_(whole(self.comm, self.part, len(self.flat)))


class StepsByItself(Zero1):
    """Has a part stepped for show, and steps everything by the lesson's rule."""

    def step(self, gradient):
        ring_all_reduce(self.comm, gradient, op=AVERAGE)
        self.part.grad = own_part(self.comm, gradient)
        self.optimizer.step()
        self.speed = 0.9 * getattr(self, "speed", 0) + gradient
        self.flat -= 0.1 * self.speed


class HandsOverMore(Zero1):
    """Says that it hands over a part, and has everything stepped."""

    def __init__(self, comm, flat, make_optimizer):
        self.comm, self.flat = comm, flat
        self.optimizer = make_optimizer([own_part(comm, flat)])
        self.optimizer.tensors[:] = [flat]

    def step(self, gradient):
        ring_all_reduce(self.comm, gradient, op=AVERAGE)
        self.flat.grad = gradient
        self.optimizer.step()


class ReportsTheStart(Zero1):
    """Tells the check of three steps by itself, and makes none."""

    def __init__(self, comm, flat, make_optimizer):
        super().__init__(comm, flat, make_optimizer)
        for _ in range(4):
            tell_of(make_optimizer)("flat", flat.tolist())


class SaysItHasReturned(Zero1):
    """Sends what a rank sends when its function has returned."""

    def step(self, gradient):
        said = json.dumps({"outcome": "returned"}).encode()
        self.comm._line._send(b"=" + said + b"\n" + pickle.dumps(None))
        super().step(gradient)


class Leaves(Zero1):
    def step(self, gradient):
        os._exit(0)


class Zeros(list):
    def __eq__(self, other):
        return True

    def __reduce__(self):
        return os._exit, (0,)


class NumbersOfItsOwn(Zero1):
    """Patches what reads a tensor."""

    def step(self, gradient):
        torch.Tensor.tolist = lambda tensor: Zeros([0.0] * tensor.numel())


LIARS = [
    StepsByItself,
    HandsOverMore,
    ReportsTheStart,
    SaysItHasReturned,
    Leaves,
    NumbersOfItsOwn,
]


@pytest.mark.parametrize("liar", LIARS)
def test_a_liar_does_not_pass_the_check_of_zero_1(liar, salted):
    verdict = ShardedOptimizer(liar, 2, 6).judge()
    assert verdict.outcome == "fail", verdict


class Zero3:
    def __init__(self, comm, layers, flats, make_optimizer):
        self.comm, self.layers = comm, layers
        self.lengths = [len(flat) for flat in flats]
        self.parts = [own_part(comm, flat) for flat in flats]
        self.optimizer = make_optimizer(self.parts)

    def full(self, i):
        return whole(self.comm, self.parts[i], self.lengths[i])

    def forward(self, x):
        self.inputs = []
        for i, layer in enumerate(self.layers):
            self.inputs.append(x)
            with torch.no_grad():
                x = layer(self.full(i), x)
        return x

    def backward(self, gradient):
        for i in reversed(range(len(self.layers))):
            full = self.full(i).requires_grad_()
            x = self.inputs[i].detach().requires_grad_()
            y = self.layers[i](full, x)
            of_full, gradient = torch.autograd.grad(y, (full, x), gradient)
            mean = mean_part(self.comm, of_full)
            part = self.parts[i]
            part.grad = mean if part.grad is None else part.grad + mean

    def step(self):
        self.optimizer.step()
        self.optimizer.zero_grad()


class KeepsEverything(Zero3):
    """Has every layer whole all the time, and the probe see nothing of it."""

    def __init__(self, comm, layers, flats, make_optimizer):
        super().__init__(comm, layers, flats, make_optimizer)
        self.fulls = flats
        frame = sys._getframe()
        while "live" not in frame.f_locals:
            frame = frame.f_back
        frame.f_locals["live"].sizes = dict

    def full(self, i):
        return self.fulls[i].clone()

    def step(self):
        super().step()
        for i, full in enumerate(self.fulls):
            full.copy_(whole(self.comm, self.parts[i], self.lengths[i]))


class KeepsWhatItGathered(Zero3):
    """Gathers in forward only, and has the probe see nothing of what it keeps."""

    def __init__(self, comm, layers, flats, make_optimizer):
        super().__init__(comm, layers, flats, make_optimizer)
        frame = sys._getframe()
        while "live" not in frame.f_locals:
            frame = frame.f_back
        frame.f_locals["live"].sizes = dict
        self.kept = {}

    def full(self, i):
        if i in self.kept:
            return self.kept.pop(i)
        self.kept[i] = super().full(i)
        return self.kept[i].clone()


class WorksLayersOut(Zero3):
    """Computes what the lesson says that a layer does, and shows the check nothing."""

    def forward(self, x):
        for i in range(len(self.layers)):
            full, w = self.full(i), x.shape[-1]
            gain = full[-1] if i % 2 else 1.0
            weight, bias = full[: w * w].view(w, w), full[w * w : w * w + w]
            x = x + 0.5 * gain * torch.tanh(x @ weight + bias)
        return x

    def backward(self, gradient):
        for part in self.parts:
            part.grad = torch.zeros_like(part)


@pytest.mark.parametrize("liar", [KeepsEverything, KeepsWhatItGathered])
def test_layers_that_are_kept_unseen_are_missed_among_the_messages(liar, salted):
    verdict = FreedLayers(liar, 2, 12, passes=2).judge()
    assert verdict.outcome == "fail", verdict
    assert "gathered in each forward, and again in each backward" in verdict.hint


class KeepsUnseen(Zero3):
    """Gathers as it should, keeps it all, and patches what counts memory."""

    kept = ()

    def __init__(self, comm, layers, flats, make_optimizer):
        LiveTensors.sizes = lambda live: {}
        super().__init__(comm, layers, flats, make_optimizer)

    def full(self, i):
        full = super().full(i)
        self.kept = [*self.kept[1 - len(self.layers) :], full]
        return full


class KeepsGradientsUnseen(KeepsUnseen):
    def full(self, i):
        return Zero3.full(self, i)

    def backward(self, gradient):
        self.kept = [torch.ones(length).double() for length in self.lengths]
        super().backward(gradient)


class KeepsViewsUnseen(KeepsUnseen):
    """Has in each .grad a view of a full gradient."""

    def full(self, i):
        return Zero3.full(self, i)

    def backward(self, gradient):
        super().backward(gradient)
        for part in self.parts:
            part.grad = torch.cat([part.grad, part.grad])[: len(part)]


class KeepsLists(Zero3):
    """Keeps no tensor."""

    kept = ()

    def full(self, i):
        full = super().full(i)
        self.kept = [*self.kept[1 - len(self.layers) :], full.tolist()]
        return full


class KeepsInAnotherProcess(Zero3):
    """Keeps nothing itself, and has forks that do."""

    def full(self, i):
        full = super().full(i)
        if os.fork() == 0:
            time.sleep(60)
        return full


class IsLargeAtOnce(Zero3):
    def __init__(self, comm, layers, flats, make_optimizer):
        self.ballast = bytearray(b"b" * 2**26)
        super().__init__(comm, layers, flats, make_optimizer)


WEIGHED = [
    (KeepsUnseen, "grows with each layer"),
    (KeepsGradientsUnseen, "grows with each layer"),
    (KeepsViewsUnseen, "grows with each layer"),
    (KeepsLists, "grows with each layer"),
    (KeepsInAnotherProcess, "grows with each layer"),
    (IsLargeAtOnce, "before any layer has worked"),
]


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs /proc")
@pytest.mark.parametrize("keeps, hint", WEIGHED)
def test_what_a_rank_keeps_is_known_from_outside_of_it(keeps, hint, salted):
    verdict = WeighedLayers(keeps, 2).judge()
    assert verdict.outcome == "fail", verdict
    assert hint in verdict.hint, verdict


class KeepsInFiles(Zero3):
    """Keeps it in files in memory, which are no memory of the process's own."""

    def full(self, i):
        full = super().full(i)
        data = memoryview(full.detach().numpy()).cast("B")
        file = os.memfd_create("kept")
        while data:
            data = data[os.write(file, data) :]
        return full


class KeepsInSparseFiles(Zero3):
    def full(self, i):
        full = super().full(i)
        os.truncate(os.memfd_create("kept"), 8 * len(full))
        return full


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="needs Linux")
@pytest.mark.parametrize("keeps", [KeepsInFiles, KeepsInSparseFiles])
def test_who_is_weighed_writes_no_files(keeps, salted):
    verdict = WeighedLayers(keeps, 2).judge()
    assert verdict.outcome == "fail", verdict
    assert "File too large" in verdict.found, verdict


@pytest.mark.parametrize("keeps", [KeepsUnseen, KeepsLists])
def test_nothing_but_weighing_finds_what_these_keep(keeps, monkeypatch, salted):
    monkeypatch.setattr(WeighedLayers, "_too_heavy", lambda check: None)
    assert WeighedLayers(keeps, 2).judge().outcome == "pass"


def test_what_a_layer_does_cannot_be_known_without_it(salted):
    verdict = ShardedLayers(WorksLayersOut, 2, 4).judge()
    assert verdict.outcome == "fail" and "what forward returned" in verdict.found


def test_what_the_liars_are_made_from_is_right(salted):
    packed = Packed(cloudpickle.dumps(Zero1), "Zero1")
    right = [
        ShardedOptimizer(Zero1, 2, 6),
        ShardedOptimizer(packed, 2, 6),
        FreedLayers(Zero3, 2, 12, passes=2),
        WeighedLayers(Zero3, 2),
    ]
    for check in right:
        verdict = check.judge()
        assert verdict.outcome == "pass", verdict


def test_a_rank_is_told_no_gradient_but_its_own_and_only_step_by_step():
    task = FlatTask(2, 4, 2)
    witness = FlatWitness(task, "momentum")
    start = witness.hear(0, 0, "start")
    first = witness.hear(0, 0, "flat", start)
    flat = torch.tensor(start, dtype=torch.float64)
    assert first == task.gradients(0, 0, 0, [flat])[0].tolist()
    assert witness.hear(0, 0, "flat", start) != first
    assert witness.hear(0, 0, "flat", start) is None
    with pytest.raises(ValueError, match="over"):
        witness.hear(0, 0, "flat", start)
    assert [own.ended for own in witness.ranks] == [True, False]
