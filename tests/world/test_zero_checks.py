"""Wrong ZeRO 1 and ZeRO 3 each meet the hint that fits; right ones pass.

The exercise's own variants are graded as notebooks; here are more, and quicker.
"""

import pytest
import torch
import torch.distributed
from torch.utils.checkpoint import checkpoint

from distlab.collectives import (
    AVERAGE,
    SUM,
    naive_all_reduce,
    ring_all_gather,
    ring_all_reduce,
    ring_reduce_scatter,
)
from distlab.grading import FreedLayers, ShardedLayers, ShardedOptimizer
from distlab.grading.zero.live_memory import LiveTensors


def padded(flat, n):
    return torch.cat([flat, flat.new_zeros(-len(flat) % n)])


def own_part(comm, flat):
    return padded(flat, comm.world_size).view(comm.world_size, -1)[comm.rank].clone()


def whole(comm, part, length):
    return torch.cat(ring_all_gather(comm, part))[:length]


def mean_part(comm, gradient, op=AVERAGE):
    return ring_reduce_scatter(comm, padded(gradient, comm.world_size), op=op).clone()


def judged(check, hint):
    verdict = check.judge()
    assert verdict.outcome == "fail", verdict
    assert hint in verdict.hint, verdict
    return verdict


# ---- ZeRO 1 ---------------------------------------------------------------------


class Zero1:
    def __init__(self, comm, flat, make_optimizer):
        self.comm, self.flat, self.make = comm, flat, make_optimizer
        self.part = own_part(comm, flat)
        self.optimizer = make_optimizer([self.part])

    def step(self, gradient):
        self.part.grad = self.reduced(gradient)
        self.optimizer.step()
        self.flat.copy_(self.gathered())

    def reduced(self, gradient):
        return mean_part(self.comm, gradient)

    def gathered(self):
        return whole(self.comm, self.part, len(self.flat))


class Summed(Zero1):
    def reduced(self, gradient):
        return mean_part(self.comm, gradient, SUM)


class AveragedTwice(Zero1):
    def reduced(self, gradient):
        return super().reduced(gradient) / self.comm.world_size


class OwnGradient(Zero1):
    def reduced(self, gradient):
        return own_part(self.comm, gradient)


class Kept(Zero1):
    def reduced(self, gradient):
        before = 0 if self.part.grad is None else self.part.grad
        return super().reduced(gradient) + before


class Remade(Zero1):
    def reduced(self, gradient):
        self.optimizer = self.make([self.part])
        return super().reduced(gradient)


class StepsAnother(Zero1):
    def __init__(self, comm, flat, make_optimizer):
        super().__init__(comm, flat, make_optimizer)
        self.part = self.part.clone()


class Rebinds(Zero1):
    def step(self, gradient):
        self.part.grad = self.reduced(gradient)
        self.optimizer.step()
        self.flat = self.gathered()


class TellsNobody(Zero1):
    def step(self, gradient):
        self.part.grad = self.reduced(gradient)
        self.optimizer.step()


class GathersTooEarly(Zero1):
    def step(self, gradient):
        self.part.grad = self.reduced(gradient)
        self.flat.copy_(self.gathered())
        self.optimizer.step()


class StepsAView(Zero1):
    def __init__(self, comm, flat, make_optimizer):
        self.comm, self.flat = comm, flat
        self.part = padded(flat, comm.world_size).chunk(comm.world_size)[comm.rank]
        self.optimizer = make_optimizer([self.part])


class StepsATensor(Zero1):
    def __init__(self, comm, flat, make_optimizer):
        make_optimizer(own_part(comm, flat))


class Reversed(Zero1):
    def gathered(self):
        return torch.cat(ring_all_gather(self.comm, self.part)[::-1])[: len(self.flat)]


class Alone(Zero1):
    def __init__(self, comm, flat, make_optimizer):
        self.flat, self.optimizer = flat, make_optimizer([flat])

    def step(self, gradient):
        self.flat.grad = gradient
        self.optimizer.step()


class ThroughRank0(Zero1):
    def reduced(self, gradient):
        naive_all_reduce(self.comm, gradient, op=AVERAGE)
        return own_part(self.comm, gradient)


class TwoAllReduces(Zero1):
    def reduced(self, gradient):
        ring_all_reduce(self.comm, gradient, op=AVERAGE)
        return own_part(self.comm, gradient)

    def gathered(self):
        parts = torch.zeros(self.comm.world_size, len(self.part), dtype=torch.float64)
        parts[self.comm.rank] = self.part
        ring_all_reduce(self.comm, parts)
        return parts.flatten()[: len(self.flat)]


class TorchsOwn(Zero1):
    def reduced(self, gradient):
        torch.distributed.all_reduce(gradient)
        return own_part(self.comm, gradient / self.comm.world_size)


class Unpadded(Zero1):
    def __init__(self, comm, flat, make_optimizer):
        super().__init__(comm, flat, make_optimizer)
        self.part = flat.tensor_split(comm.world_size)[comm.rank]


class UnevenParts(Unpadded):
    def reduced(self, gradient):
        return ring_reduce_scatter(self.comm, gradient, op=AVERAGE)


class Float32(Zero1):
    def reduced(self, gradient):
        return super().reduced(gradient.float()).double()


class NotALeaf(Zero1):
    def __init__(self, comm, flat, make_optimizer):
        make_optimizer([own_part(comm, flat.requires_grad_())])


class NoOptimizer(Zero1):
    def __init__(self, comm, flat, make_optimizer):
        pass

    def step(self, gradient):
        pass


class NotWritten:
    def __init__(self, *args):
        raise NotImplementedError("write this step")


OPTIMIZERS = [
    (Summed, "with all the data"),
    (AveragedTwice, "divided by n once too often"),
    (OwnGradient, "its owner's gradient alone"),
    (Kept, "The step before this one is added again"),
    (Remade, "The momentum is lost"),
    (StepsAnother, "The parameters are as they were"),
    (Rebinds, "written into `flat` itself, in place"),
    (TellsNobody, "After the step, who tells the others"),
    (GathersTooEarly, "After the step, who tells the others"),
    (StepsAView, "Does own_part return memory of its own"),
    (StepsATensor, "what did it get from you"),
    (Reversed, "at other places"),
    (Alone, "The ranks have different parameters"),
    (ThroughRank0, "One rank sends much more"),
    (TwoAllReduces, "That is two all-reduces"),
    (TorchsOwn, "Write it from ring_reduce_scatter"),
    (Unpadded, "Which of the two is padded"),
    (UnevenParts, "All parts must be equally long"),
    (Float32, "torch.zeros makes float32"),
    (NotALeaf, "nothing was computed from"),
    (NoOptimizer, "made by make_optimizer"),
    (NotWritten, "Nothing of your own"),
]


@pytest.mark.parametrize("mistake, hint", OPTIMIZERS)
def test_a_mistake_in_zero_1_meets_the_hint_that_fits(mistake, hint):
    numbers = 8 if mistake in (Reversed, TwoAllReduces) else 10
    judged(ShardedOptimizer(mistake, 4, numbers), hint)


def test_a_verdict_names_step_rank_and_place_with_both_numbers():
    found = ShardedOptimizer(Kept, 2, 3).judge().found
    assert "The parameters after step 2:" in found
    assert "Position 0 on rank 0 is the first to differ; 3 of 3 do there." in found


# ---- ZeRO 3 ---------------------------------------------------------------------


class Zero3:
    def __init__(self, comm, layers, flats, make_optimizer):
        self.comm, self.layers = comm, layers
        self.lengths = [len(flat) for flat in flats]
        self.parts = [self.cut(flat) for flat in flats]
        self.optimizer = make_optimizer(self.parts)

    def cut(self, flat):
        return own_part(self.comm, flat)

    def gather(self, i):
        return whole(self.comm, self.parts[i], self.lengths[i])

    def forward(self, x):
        self.inputs = []
        for i, layer in enumerate(self.layers):
            self.inputs.append(x)
            with torch.no_grad():
                x = layer(self.gather(i), x)
        return x

    def backward(self, gradient):
        for i in reversed(range(len(self.layers))):
            gradient = self.back(i, self.gather(i).requires_grad_(), gradient)

    def back(self, i, full, gradient):
        x = self.inputs[i].detach().requires_grad_()
        y = self.layers[i](full, x)
        of_full, gradient = torch.autograd.grad(y, (full, x), gradient)
        self.reduce(self.parts[i], of_full)
        return gradient

    def reduce(self, part, gradient):
        mean = mean_part(self.comm, gradient)
        part.grad = mean if part.grad is None else part.grad + mean

    def step(self):
        self.optimizer.step()
        self.optimizer.zero_grad()


class PartIsAView(Zero3):
    def cut(self, flat):
        return padded(flat, self.comm.world_size).view(self.comm.world_size, -1)[
            self.comm.rank
        ]


class KeepsTheFlats(Zero3):
    def __init__(self, comm, layers, flats, make_optimizer):
        super().__init__(comm, layers, flats, make_optimizer)
        self.flats = flats


class PaddingToTheLayer(Zero3):
    def gather(self, i):
        return torch.cat(ring_all_gather(self.comm, self.parts[i]))


class PartInFloat32(Zero3):
    def cut(self, flat):
        return super().cut(flat.float())


class ForwardNotWritten(Zero3):
    def forward(self, x):
        raise NotImplementedError("write this step")


class NoGradients(Zero3):
    def back(self, i, full, gradient):
        return super().back(i, full.detach(), gradient)


class InputsInOrder(Zero3):
    def back(self, i, full, gradient):
        self.inputs = self.inputs[::-1]
        return super().back(i, full, gradient)


class ReturnsNothing(Zero3):
    def forward(self, x):
        super().forward(x)


class FirstLayerFirst(Zero3):
    def backward(self, gradient):
        for i in range(len(self.layers)):
            gradient = self.back(i, self.gather(i).requires_grad_(), gradient)


class LastInputFirst(Zero3):
    def backward(self, gradient):
        for i in range(len(self.layers)):
            full, self.inputs = self.gather(i), [self.inputs[-1]] * len(self.inputs)
            gradient = self.back(i, full.requires_grad_(), gradient)


class GradientStaysBehind(Zero3):
    def back(self, i, full, gradient):
        super().back(i, full, gradient)
        return gradient


class NeverClears(Zero3):
    def step(self):
        self.optimizer.step()


class OwnGradients(Zero3):
    def reduce(self, part, gradient):
        part.grad = own_part(self.comm, gradient)


class SeesItself(Zero3):
    def gather(self, i):
        part = self.parts[i]
        full = part.new_zeros(self.comm.world_size, len(part))
        full[self.comm.rank] = part
        return full.flatten()[: self.lengths[i]]


class FreesItsPart(Zero3):
    def gather(self, i):
        full = super().gather(i)
        self.parts[i].untyped_storage().resize_(0)
        return full


STACKS = [
    (PartIsAView, "A slice is a view"),
    (KeepsTheFlats, "A slice is a view"),
    (PaddingToTheLayer, "Padding belongs to the parts"),
    (PartInFloat32, "torch.zeros makes float32"),
    (ForwardNotWritten, "from when on can it go"),
    (NoGradients, "both need requires_grad_()"),
    (InputsInOrder, "the x that it had in forward"),
    (ReturnsNothing, "forward returns what the last layer returned"),
    (FirstLayerFirst, "in which order does it go"),
    (LastInputFirst, "in which order does it go"),
    (GradientStaysBehind, "the gradient that goes down"),
    (NeverClears, "The step before this one is added again"),
    (OwnGradients, "its owner's gradient alone"),
    (SeesItself, "Whatever the others own has to be gathered"),
    (FreesItsPart, "Memory was freed by hand"),
]


@pytest.mark.parametrize("mistake, hint", STACKS)
def test_a_mistake_in_zero_3_meets_the_hint_that_fits(mistake, hint):
    judged(ShardedLayers(mistake, 2, 4), hint)


# ---- what stays in memory, and what is sent -------------------------------------


class AllAtOnce(Zero3):
    def forward(self, x):
        self.fulls = [self.gather(i) for i in range(len(self.parts))]
        with torch.no_grad():
            self.inputs = [x]
            for layer, full in zip(self.layers, self.fulls, strict=True):
                self.inputs.append(layer(full, self.inputs[-1]))
        self.fulls = None
        return self.inputs[-1]


class AllAtOnceInBackward(Zero3):
    def backward(self, gradient):
        fulls = [self.gather(i).requires_grad_() for i in range(len(self.parts))]
        for i in reversed(range(len(fulls))):
            gradient = self.back(i, fulls[i], gradient)


class KeepsAList(Zero3):
    held = ()

    def gather(self, i):
        self.held = [*self.held, super().gather(i)]
        return self.held[-1]


class KeepsCopies(Zero3):
    held = ()

    def gather(self, i):
        full = super().gather(i)
        self.held = [*self.held, full.clone()]
        return full


class KeepsTheLast(Zero3):
    def gather(self, i):
        self.last = super().gather(i)
        return self.last


class KeepsInputs(Zero3):
    held = ()

    def forward(self, x):
        x = super().forward(x)
        self.held = [*self.held, *self.inputs]
        return x


class KeepsGradients(Zero3):
    held = ()

    def reduce(self, part, gradient):
        self.held = [*self.held, gradient]
        super().reduce(part, gradient)


class KeepsOutputsOfBackward(Zero3):
    outputs = ()

    def back(self, i, full, gradient):
        y = self.layers[i](full, self.inputs[i])
        self.outputs = [*self.outputs, y]
        return super().back(i, full, gradient)


class GathersTwice(Zero3):
    def back(self, i, full, gradient):
        self.gather(i)
        return super().back(i, full, gradient)


class WithCheckpoints(Zero3):
    def cut(self, flat):
        return own_part(self.comm, flat).requires_grad_()

    def forward(self, x):
        for layer, part, length in zip(
            self.layers, self.parts, self.lengths, strict=True
        ):
            args = layer, part, length, x
            x = checkpoint(self.gathered, *args, use_reentrant=False)
        self.output = x
        return x.detach()

    def gathered(self, layer, part, length, x):
        return layer(Gathered.apply(part, self.comm, length), x)

    def backward(self, gradient):
        torch.autograd.backward(self.output, gradient)
        self.output = None


class Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part, comm, length):
        ctx.comm = comm
        return whole(comm, part, length)

    @staticmethod
    def backward(ctx, gradient):
        return mean_part(ctx.comm, gradient), None, None


KEPT = [
    (AllAtOnce, "before the first of them works"),
    (AllAtOnceInBackward, "before the first of them works"),
    (KeepsAList, "Which list or attribute holds"),
    (KeepsCopies, "copies, or gathered pieces"),
    (KeepsTheLast, "a whole layer is still there"),
    (KeepsInputs, "tensors as large as a layer's input"),
    (KeepsGradients, "no .grad is a view of one"),
    (KeepsOutputsOfBackward, "an output whose graph"),
    (GathersTwice, "gathered once more there"),
]


@pytest.mark.parametrize("mistake, hint", KEPT)
def test_what_stays_or_moves_too_often_meets_the_hint_that_fits(mistake, hint):
    passes = 2 if mistake is KeepsInputs else 1
    judged(FreedLayers(mistake, 3, 40, passes=passes), hint)


def test_layers_gathered_before_their_turn_are_counted_beside_those_called():
    found = judged(FreedLayers(AllAtOnce, 3, 40), "").found
    assert "0  0 and 7 more" in found


@pytest.mark.parametrize("right, n, passes", [(Zero3, 3, 2), (WithCheckpoints, 2, 1)])
def test_a_stack_that_lets_go_passes(right, n, passes):
    verdict = FreedLayers(right, n, 33, passes=passes).judge()
    assert verdict.outcome == "pass", verdict


def test_live_tensors_counts_storages_whoever_holds_them():
    with LiveTensors() as live:
        kept = torch.ones(100, dtype=torch.float64)
        assert sum(live.sizes().values()) == 800
        part = torch.zeros(50, dtype=torch.float64)[:1]
        assert sum(live.sizes().values()) == 1200  # all that a view is a view of
        y = (kept.clone().requires_grad_() ** 3).sum()
        del kept
        assert sum(live.sizes().values()) == 1200 + 8  # autograd keeps the copy
        del y
        part.untyped_storage().resize_(0)
        with live.paused():
            torch.ones(7)
        assert not live.sizes()
