"""Exercise 12: ZeRO 1 and ZeRO 3, judged by their numbers, memory and messages.

The learner's class trains on ranks, each with data of its own; one process trains the
same with the data of all. Layers note what they are called with, and what is in memory.
"""

from functools import partial
from itertools import product
from math import isclose
from random import SystemRandom

import torch
import torch._dynamo  # an optimizer would, in every rank

from distlab.checks.kit import Hint, Wrong, called, check, difference, on_ranks
from distlab.train.live_memory import LiveTensors

WITHOUT = ("distlab.train.zero", "distlab.train.shards", "distlab.train.fsdp")
NUMBER, BATCH = 8, 2  # float64
MOST = {"after __init__": 1, "backward": 6, "after step": 1}  # layers in use, else 3
OPTIMIZERS = {
    "momentum": partial(torch.optim.SGD, lr=0.1, momentum=0.9),
    "Adam": partial(torch.optim.Adam, lr=0.05),
}
_fresh = partial(SystemRandom().sample, range(2**60))  # seeds drawn anew


@check("{} ranks, {} parameters, {}")
def sharded_optimizer(function, n, length, kind):
    """ZeRO 1 trains one flat tensor as one process does, each rank its shard."""
    (start, *seeds), shard = _fresh(1 + n), -(-length // n)
    args = length, kind, start
    report = on_ranks(_flat_probe, function, seeds, args=args, without=WITHOUT)
    flats = [_drawn(start, length)]
    _compare(report, trained(flats, _flat_gradients, kind, seeds, 3), shard)
    _check_traffic(report, 3 * 2 * (n - 1) * shard, "3 steps of 2(n-1)/n")


@check("{} ranks, 3 layers of width {}, {}")
def sharded_layers(function, n, width, kind):
    """ZeRO 3 trains a stack of layers as one process does, each rank its shards."""
    _trained_stack(function, n, width, kind, 3, 2, 1)


@check("{} ranks, 8 layers of width {}, passes per step: {}")
def freed_layers(function, n, width, passes):
    """The same; full parameters are gone between uses, and 3(n-1)/n of them move."""
    report, shard = _trained_stack(function, n, width, "momentum", 8, 1, passes)
    for rank, result in enumerate(report.results if n > 1 else []):
        _check_memory(rank, result["looks"])
    most = (3 * passes + 1) * (n - 1) * shard  # the last forward shows what was trained
    _check_traffic(report, most, f"3(n-1)/n in each pass, {passes}, and a forward")


def memory_over_a_pass(function, world_size: int = 4) -> tuple[dict, dict]:
    """Return how many layers rank 0 has in use at each call of one, and ideals."""
    args = 40, "momentum", 1, 1, _fresh(8)
    report = on_ranks(_stack_probe, function, _fresh(world_size), args=args)
    looks, calls = report.results[0]["looks"], list(range(1, 17))
    mine = [layers for at, layers in looks if "layer" in at][:16]
    one = [1 + min(k, 17 - k) * BATCH / 41 for k in calls]
    kept = [min(k, 8) - 1 + x for k, x in zip(calls, one, strict=True)]
    ideals = {"rank 0": (calls, one), "all layers kept": (calls, kept)}
    return {"rank 0": (calls[: len(mine)], mine)}, ideals


def trained(flats, gradients, kind, seeds, steps, passes=1):
    """Return all parameters in one process, at the start and after each step."""
    flats = [flat.clone() for flat in flats]
    optimizer, history = OPTIMIZERS[kind](flats), [torch.cat(flats).tolist()]
    for step in range(steps):
        for flat in flats:
            flat.grad = torch.zeros_like(flat)
        for turn, seed in product(range(passes), seeds):
            own = gradients(flats, seed + 100 * step + 10 * turn)
            for flat, gradient in zip(flats, own, strict=True):
                flat.grad += gradient / len(seeds)
        optimizer.step()
        history.append(torch.cat(flats).tolist())
    return history


def _drawn(seed, *shape):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def _starts(width, seeds):
    lengths = [width * (width + 1) + i % 2 for i in range(len(seeds))]
    return [_drawn(*each) / width**0.5 for each in zip(seeds, lengths, strict=True)]


def _layer(full, x):
    width = x.shape[1]
    weight, bias = full[: width**2].view(width, width), full[width**2 :][:width]
    return x + (1 + full[-1]) / 2 * torch.tanh(x @ weight + bias)


def _slope(y, seed):
    """Return the gradient of a squared distance."""
    return (y - _drawn(seed + 1, *y.shape)) / BATCH


def _flat_gradients(flats, seed):
    return [_slope(flats[0], seed)]


def _stack_gradients(width, flats, seed):
    flats, y = [f.detach().requires_grad_() for f in flats], _drawn(seed, BATCH, width)
    for flat in flats:
        y = _layer(flat, y)
    return torch.autograd.grad(y, flats, _slope(y.detach(), seed))


class Optimizers(list):
    """The optimizers of a rank; called, it is the `make_optimizer` of a class."""

    def __init__(self, kind):
        self.kind = kind

    def __call__(self, tensors):
        self.append(OPTIMIZERS[self.kind](tensors))
        return self[-1]

    def tensors(self):
        """Return the tensors that it was called with."""
        return [t for each in self for g in each.param_groups for t in g["params"]]

    def kept_bytes(self):
        """Return the bytes of these tensors, of their gradients and of the state."""
        grads = [t.grad for t in self.tensors() if t.grad is not None]
        state = [t for each in self for s in each.state.values() for t in s.values()]
        return sum(tensor.nbytes for tensor in (*self.tensors(), *grads, *state))


def _flat_probe(comm, function, length, kind, start, seed):
    make, flat = Optimizers(kind), _drawn(start, length)
    trainer, seen = called(function, comm, flat, make), [flat.tolist()]
    comm.mark("training")
    for step in range(3):
        trainer.step(_slope(flat, seed + 100 * step))
        seen.append(flat.tolist())
    return {"seen": seen, "stepped": sum(map(len, make.tensors()))}


class Stack:
    """The layers of a rank, each of which looks about when it is called.

    seen: the parameters in each forward. looks: how many layers were in use when.
    """

    def __init__(self, kind, lengths):
        self.live, self.make = LiveTensors(), Optimizers(kind)
        self.lengths, self.phase, self.seen, self.looks = lengths, "", [], []
        self.layers = [partial(self.layer, i) for i in range(len(lengths))]

    def layer(self, i, full, x):
        """Be layer i: note its parameters and what is in use, and return y."""
        if (got := len(full)) != (need := self.lengths[i]):
            raise ValueError(f"layer {i} has {need} parameters, and was given {got}")
        if self.phase == "forward":
            self.seen[-1] += full.tolist()
        self.look(f"{self.phase}, layer {i}")
        return _layer(full, x)

    def look(self, at):
        """Note how much is in use besides shards, their gradients and state."""
        used = sum(self.live.sizes().values()) - self.make.kept_bytes()
        self.looks.append((at, round(used / NUMBER / max(self.lengths), 2)))

    def do(self, phase, method):
        """Call a method of the trainer, and return what it returns."""
        self.phase = phase
        returned = method()
        self.look(f"after {phase}")
        return returned


def _stack_probe(comm, function, width, kind, steps, passes, starts, seed):
    stack = Stack(kind, list(map(len, _starts(width, starts))))
    with stack.live:
        given = list(stack.layers), _starts(width, starts), stack.make
        trainer = called(function, comm, *given)
        del given
        stack.look("after __init__")
        comm.mark("training")
        for step, turn in [*product(range(steps), range(passes)), (steps, 0)]:
            stack.seen.append([])
            data = seed + 100 * step + 10 * turn
            x = _drawn(data, BATCH, width)
            y = stack.do("forward", partial(trainer.forward, x))
            if len(stack.seen[-1]) != sum(stack.lengths) or y.shape != x.shape:
                raise ValueError("forward has to call each layer, and return a batch")
            if step == steps:
                break
            slope = _slope(y.detach(), data)
            del x, y
            stack.do("backward", partial(trainer.backward, slope))
            if turn == passes - 1:
                stack.do("step", trainer.step)
    stepped = sum(map(len, stack.make.tensors()))
    return {"seen": stack.seen, "looks": stack.looks, "stepped": stepped}


def _trained_stack(function, n, width, kind, count, steps, passes):
    """Return the report of a right training of a stack, and the elements of a shard."""
    starts, seeds = _fresh(count), _fresh(n)
    args, flats = (width, kind, steps, passes, starts), _starts(width, starts)
    report = on_ranks(_stack_probe, function, seeds, args=args, without=WITHOUT)
    right = trained(flats, partial(_stack_gradients, width), kind, seeds, steps, passes)
    shard = sum(-(-len(flat) // n) for flat in flats)
    _compare(report, right, shard, passes)
    return report, shard


def _compare(report, right, shard, passes=1):
    """Raise if parameters are not as in one process, or a rank steps too many."""
    n, near = len(report.results), partial(isclose, rel_tol=1e-9, abs_tol=1e-9)
    for turn, held in enumerate(zip(*(r["seen"] for r in report.results), strict=True)):
        step, wanted = turn // passes, right[turn // passes]
        pairs = [list(zip(own, wanted, strict=True)) for own in held]
        mine = [[w if near(x, w) else x for x, w in own] for own in pairs]
        if wrong := difference([(wanted, own) for own in mine]):
            found, facts = wrong
            rank, place = facts["rank"], facts["place"]
            facts |= {"passes": passes, "tail": place >= len(wanted) // n * n}
            facts["stale"] = not step or held[rank][place] == right[step - 1][place]
            raise Wrong(f"The parameters after step {step}:\n{found}", **facts)
    for rank, got in enumerate(result["stepped"] for result in report.results):
        if got > shard:
            found = f"On rank {rank} make_optimizer got {got:,} elements; "
            raise Wrong(f"{found}the rank's part has {shard:,}.", stepped=got)


def _check_traffic(report, most, told):
    trace = report.trace.since("training")
    sent = [trace.bytes_sent(rank) for rank in range(len(report.results))]
    if max(sent) > most * NUMBER:
        lines = [f"rank {rank}: sent {b:,} bytes" for rank, b in enumerate(sent)]
        lines += [f"{most * NUMBER:,} are enough: {told} of the padded parameters."]
        raise Wrong("\n".join(lines), sent=sent)


def _check_memory(rank, looks):
    """Raise at the first look at which more was in use than may be."""
    lines = []
    for at, layers in looks:
        most = MOST.get(at.partition(",")[0], 3)
        lines.append(f"{at:>18} {layers:>6}  {most:>7}")
        if layers > most:
            found = "\n".join([f"{'in use':>25}  allowed", *lines[-9:]])
            found += "  ← too much\nIn layers, besides parts, their gradients and "
            raise Wrong(f"{found}state, on rank {rank}.", at=at)


def _said(*words):
    return lambda facts: any(each in str(facts["failure"].cause) for each in words)


# fmt: off
HINTS = [
    Hint(lambda f: f.get("tail") or _said("parameters, and was given", "size of tensor",
                                          "expanded size", "does not fit")(f), [
        "n does not divide the length. Are the last elements in any shard, and is the "
        "padding cut off before a layer gets its parameters?",
        "10 elements on 4 ranks: shards of 2 hold 8 of them. What length holds all?"]),
    Hint(_said("not require grad", "not have been used", "leaf"), [
        "In backward, full and x both need requires_grad_() before the layer is "
        "called; the tensors that an optimizer steps need none: clone() makes them.",
        "The message names the line. Are these the tensors that the layer had?"]),
    Hint(lambda f: f["stale"], [
        "An all-gather is missing, or its result is not written where it is read, or "
        "index r of what ring_all_gather returns is not what your rank r owns.",
        "After optimizer.step(), who tells rank 0 what the shard of rank 1 is now?"]),
    Hint(lambda f: f["passes"] > 1, [
        "The gradient of the first pass is lost. A second backward before the step "
        "has to add to what is there.",
        "What is in p.grad when plain autograd's backward is called twice?"]),
    Hint(lambda f: f["passes"], [
        "The gradients are not those of one process: the mean over ranks, of each "
        "shard's own positions, in float64 as flat is, and none from the step before.",
        "Is the first step right? Then is the optimizer made once, and .grad cleared? "
        "Backward takes the last layer first, on the x that it had in forward."]),
    Hint(lambda f: f.get("stepped") or _said("optimizer")(f), [
        "The optimizer was made over all parameters, or twice, or of no list: it gets "
        "a list of what this rank steps. Which shard of the parameters is that?",
        "How many elements did make_optimizer get, and how many are in one shard?"]),
    Hint(lambda f: f["sent"], [
        "A reduce-scatter or an all-gather moves (n-1)/n of the parameters, and an "
        "all-reduce alone is two of these. Who needs a mean of all gradients whole?",
        "Each layer needs one collective in forward and two in backward. Which ones?"]),
    Hint(lambda f: "forward" not in f["at"], [
        "A slice, a chunk or what ring_reduce_scatter returns is a view, which keeps "
        "all of its tensor. Do own_part and .grad have memory of their own?",
        "Print the length of a part and of its .grad, and of the storage below them."]),
    Hint(lambda f: f["at"], [
        "Layers stay after they have worked: in a list, or in the graph of an output, "
        "if forward asked for gradients. Backward can gather each of them again.",
        "Which names are alive at that moment, and what does each of them keep?"]),
]
