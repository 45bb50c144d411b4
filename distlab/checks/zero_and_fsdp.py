"""Exercise 12: ZeRO 1 and ZeRO 3, judged by their numbers, memory and messages.

The learner's class trains on ranks, each with data of its own; one process trains the
same with the data of all. Layers note what they are called with, and what is in memory.
"""

import random
import tracemalloc
from functools import partial
from itertools import pairwise, product

import torch
import torch.fx.experimental.symbolic_shapes  # autograd would, in every rank

from distlab.checks.kit import Hint, Wrong, called, check, on_ranks, side_by_side
from distlab.train.live_memory import LiveTensors

WITHOUT = ("distlab.train.zero", "distlab.train.shards", "distlab.train.fsdp")
NUMBER, BATCH, STATE = 8, 2, {"momentum": 1, "Adam": 2}  # float64
MISTAKES = ("summed", "averaged twice", "kept", "remade", "last pass")


# ---- what is trained -----------------------------------------------------------------


class Optimizer:
    """SGD with momentum, or Adam; to load torch's own takes a second."""

    def __init__(self, kind, tensors):
        if isinstance(tensors, torch.Tensor) or not all(p.is_leaf for p in tensors):
            raise ValueError("make_optimizer takes a list of tensors without a graph")
        each = range(STATE[kind])
        self.state = {p: [torch.zeros_like(p) for _ in each] for p in tensors}
        self.steps = 0

    @torch.no_grad()
    def step(self):
        """Step the tensors that have a gradient."""
        self.steps += 1
        for p, (mean, *square) in self.state.items():
            if p.grad is None:
                continue
            mean.mul_(0.9).add_(p.grad)
            if not square:
                p -= 0.1 * mean
                continue
            square[0].mul_(0.999).add_(p.grad**2)
            size = (square[0] * 0.001 / (1 - 0.999**self.steps)).sqrt() + 1e-8
            p -= 0.05 * mean * 0.1 / (1 - 0.9**self.steps) / size

    def zero_grad(self, set_to_none=True):
        """Drop the gradients."""
        for p in self.state:
            p.grad = None


def trained(flats, gradients, kind, seeds, steps, passes, mistake=None):
    """Return all parameters in one process, at the start and after each step.

    gradients: (flats, seed) -> one rank's. seeds: of the ranks' data.
    """
    flats, n = [flat.clone() for flat in flats], len(seeds)
    optimizer, history = Optimizer(kind, flats), [torch.cat(flats)]
    for step in range(steps):
        if mistake == "remade":
            optimizer = Optimizer(kind, flats)
        if mistake != "kept":
            optimizer.zero_grad()
        for turn in range(passes)[-1 if mistake == "last pass" else 0 :]:
            own = [gradients(flats, _seed(seed, step, turn)) for seed in seeds]
            for flat, *each in zip(flats, *own, strict=True):
                times = {"summed": n, "averaged twice": 1 / n}.get(mistake, 1)
                mean = sum(each) / n * times
                flat.grad = mean if flat.grad is None else flat.grad + mean
        optimizer.step()
        history.append(torch.cat(flats))
    return history


def _fresh(count):
    return [random.SystemRandom().getrandbits(60) for _ in range(count)]


def _seed(rank_seed, step, turn):
    return rank_seed + 100 * step + 10 * turn


def _drawn(seed, *shape):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def _flat_gradients(flats, seed):
    steep, goal = _drawn(seed, 2, len(flats[0]))
    return [(0.2 + steep.abs()) * (flats[0] - goal)]


def _starts(width, seeds):
    lengths = [width * (width + 1) + i % 2 for i in range(len(seeds))]
    pairs = zip(seeds, lengths, strict=True)
    return [_drawn(seed, length) / width**0.5 for seed, length in pairs]


def _layer(i, width, full, x):
    """Return what layer i makes of x; odd ones have a gain as their last parameter."""
    weight, bias = full[: width**2].view(width, width), full[width**2 :][:width]
    return x + 0.5 * (full[-1] if i % 2 else 1.0) * torch.tanh(x @ weight + bias)


def _slope(y, seed):
    """Return the gradient of a squared distance."""
    return (y - _drawn(seed + 1, *y.shape)) / BATCH


def _stack_gradients(width, flats, seed):
    flats, y = [f.detach().requires_grad_() for f in flats], _drawn(seed, BATCH, width)
    for i, flat in enumerate(flats):
        y = _layer(i, width, flat, y)
    return torch.autograd.grad(y, flats, _slope(y.detach(), seed))


# ---- in a rank -----------------------------------------------------------------------


class Optimizers:
    """The `make_optimizer` that a learner's class is given, and what it has made."""

    def __init__(self, kind):
        self.kind, self.made = kind, []

    def __call__(self, tensors):
        self.made.append(Optimizer(self.kind, tensors))
        return self.made[-1]

    def held(self):
        """Return the tensors that are stepped, and those of the state."""
        pairs = [pair for each in self.made for pair in each.state.items()]
        return [p for p, _ in pairs], [t for _, state in pairs for t in state]

    def told(self):
        """Return how many tensors and elements are stepped, and the state's bytes."""
        handed, state = self.held()
        sizes = {"tensors": len(handed), "handed": sum(map(len, handed))}
        return sizes | {"state": sum(tensor.nbytes for tensor in state)}


def _flat_probe(comm, function, length, kind, start, seed):
    make, flat = Optimizers(kind), _drawn(start, length)
    trainer, flats = called(function, comm, flat, make), [_bytes(flat)]
    storages = [t.untyped_storage() for t in [flat, *make.held()[0]]]
    kept = sum({s.data_ptr(): s.nbytes() for s in storages}.values()) - flat.nbytes
    comm.mark("training")
    for step in range(3):
        trainer.step(_flat_gradients([flat], _seed(seed, step, 0))[0])
        flats.append(_bytes(flat))
    return make.told() | {"flats": flats, "kept": kept}


class Stack:
    """The layers of a rank, each of which looks about when it is called.

    seen: the parameters in the first forward of each step. looks: what was in use when.
    """

    phases = "forward", "backward", "step"

    def __init__(self, comm, width, kind, lengths):
        self.comm, self.width, self.lengths = comm, width, lengths
        self.phase = "__init__"
        self.live, self.make = LiveTensors(), Optimizers(kind)
        self.seen, self.looks, self.fulls = [], [], {}
        self.layers = [partial(self.layer, i) for i in range(len(lengths))]

    def layer(self, i, full, x):
        """Be layer i: note its parameters and what is in use, and return y."""
        if len(full) != self.lengths[i]:
            told = f"{self.lengths[i]} parameters, and was given {len(full)}"
            raise ValueError(f"layer {i} has {told}")
        if self.phase == "forward":
            self.seen[-1] += _bytes(full)
        self.fulls[full.untyped_storage()._cdata] = i
        self.look(i, torch.is_grad_enabled() and full.requires_grad)
        return _layer(i, self.width, full, x)

    def begin(self, phase):
        """Note what begins."""
        self.phase = phase
        self.comm.mark(phase)
        if phase == "forward":
            self.seen.append(b"")

    def look(self, layer=None, graph=False):
        """Note how much memory is in use, and which layers are whole in it."""
        sizes, (handed, state) = self.live.sizes(), self.make.held()
        grads = [p.grad for p in handed if p.grad is not None]
        own, unit = sum(t.nbytes for t in handed + grads), min(self.lengths) * NUMBER
        self.fulls = {key: i for key, i in self.fulls.items() if key in sizes}
        self.looks.append({
            "at": f"{self.phase}, layer {layer}", "phase": self.phase, "graph": graph,
            "use": sum(sizes.values()) - own - sum(t.nbytes for t in state),
            "own": own, "whole": sorted({*self.fulls.values()}), "grads": bool(grads),
            "large": sum(s >= unit for k, s in sizes.items() if k not in self.fulls),
        })  # fmt: skip
        if layer is None:
            self.looks[-1]["at"] = f"after {self.phase}"
            self.looks[-1]["others"] = self.phase == "forward" and _blocks(unit)


def _bytes(tensor):
    copy = tensor.detach().to(torch.float64, copy=True)
    return (
        copy.contiguous().numpy().tobytes()
    )  # of its own: numpy fixes a storage's size


def _numbers(data):
    return torch.frombuffer(bytearray(data), dtype=torch.float64)


def _blocks(size):
    """Return how many lists, arrays and bytes, not torch's, are as large as a layer."""
    traces = tracemalloc.take_snapshot().traces
    large = [t for t in traces if size <= t.size <= 1.2 * size]
    return sum(trace.traceback[0].filename != __file__ for trace in large)


def _stack_probe(comm, function, width, kind, steps, passes, starts, seed):
    tracemalloc.start()
    stack = Stack(comm, width, kind, list(map(len, _starts(width, starts))))
    with stack.live:
        flats = _starts(width, starts)
        trainer = called(function, comm, list(stack.layers), flats, stack.make)
        del flats
        stack.look()
        for step, turn in [*product(range(steps), range(passes)), (steps, 0)]:
            data = _seed(seed, step, turn)
            stack.begin("forward")
            y = trainer.forward(_drawn(data, BATCH, width))
            if not isinstance(y, torch.Tensor) or y.shape != (BATCH, width):
                raise TypeError(f"forward returned {str(y)[:50]}, not the last layer's")
            slope = _slope(y.detach(), data)
            del y
            stack.look()
            if step < steps:
                stack.begin("backward")
                trainer.backward(slope)
                stack.look()
            if step < steps and turn == passes - 1:
                stack.begin("step")
                trainer.step()
                stack.look()
    tracemalloc.stop()
    return stack.make.told() | {"flats": stack.seen, "looks": stack.looks}


# ---- the checks ----------------------------------------------------------------------


@check("{} ranks, {} parameters, {}")
def sharded_optimizer(function, n, length, kind):
    """ZeRO 1 trains one flat tensor as one process does, each rank its shard."""
    (start, *seeds), shard = _fresh(1 + n), -(-length // n)
    args = length, kind, start
    report = on_ranks(_flat_probe, function, seeds, args=args, without=WITHOUT)
    flats = [_drawn(start, length)]
    _compare(
        report, kind, flats, partial(trained, flats, _flat_gradients, kind, seeds, 3, 1)
    )
    for rank, result in enumerate(report.results):
        if result["kept"] > (size := result["handed"] * NUMBER):
            found = f"The parameters are right. On rank {rank} the optimizer's shard "
            found += f"has {size:,} bytes, and keeps {result['kept']:,} in memory."
            raise Wrong(found, kind="own_part")
    once, trace = 3 * (n - 1) * shard * NUMBER, report.trace.since("training")
    sent = [trace.bytes_sent(rank) for rank in range(n)]
    if max(sent) > 2 * once:
        lines = [f"rank {rank}: sent {b:,} bytes" for rank, b in enumerate(sent)]
        lines.append(f"In 3 steps {2 * once:,} are enough for each rank, 2(n-1)/n of")
        raise Wrong("\n".join([*lines, "the padded parameters a step."]), sent=sent)


@check("{} ranks, 3 layers of width {}, {}")
def sharded_layers(function, n, width, kind):
    """ZeRO 3 trains a stack of layers as one process does, and keeps shards only."""
    _trained_stack(function, n, width, kind, 3, 2, 1)


@check("{} ranks, 8 layers of width {}, passes per step: {}")
def freed_layers(function, n, width, passes):
    """The same; full parameters are gone between uses, and 3(n-1)/n of them move."""
    report = _trained_stack(function, n, width, "momentum", 8, 1, passes)
    sent = [_sent_in_first_pass(report.trace, rank) for rank in range(n)]
    for rank, result in enumerate(report.results if n > 1 else []):
        for at, look in enumerate(result["looks"]):
            if look["use"] > _allowed(look, n, width):
                found = _memory_told(rank, result["looks"][: at + 1], n, width)
                raise Wrong(found, kind=_kept(result["looks"][: at + 1], sent))
            if look.get("others", 0) > 3:
                found = f"{look['at']}, on rank {rank}: {look['others']} lists, "
                found += "arrays or bytes are as large as a whole layer."
                raise Wrong(found, kind="others")
    lengths = [width * (width + 1) + i % 2 for i in range(8)]
    once = (n - 1) * NUMBER * sum(-(-length // n) for length in lengths)
    if any(sum(pair) > 3 * once for pair in sent):
        lines = [f"{'rank':>6}  {'forward':>10}  {'backward':>10}"]
        lines += [f"{r:>6}  {f:>10,}  {b:>10,}" for r, (f, b) in enumerate(sent)]
        lines += [f"{'ideal':>6}  {once:>10,}  {2 * once:>10,}"]
        lines += ["Bytes sent in the first pass: (n-1)/n of the parameters, 3 times."]
        raise Wrong("\n".join(lines), sent=list(map(sum, sent)))


def memory_over_a_pass(function, world_size: int = 4) -> tuple[dict, dict]:
    """Return curves of what rank 0 has in use, in layers, at each call of a layer.

    Returns: the learner's by name; and what it takes if one layer at a time is whole,
        beside what it takes to keep them all.
    """
    args, unit = (40, "momentum", 1, 1, _fresh(8)), 40 * 41 * NUMBER
    report = on_ranks(_stack_probe, function, _fresh(world_size), args=args)
    looks = [look for look in report.results[0]["looks"] if "layer" in look["at"]]
    mine = [(look["use"] + look["own"]) / unit for look in looks[:16]]
    inputs = [min(k + 1, 16 - k) * BATCH / 41 for k in range(16)]
    own = [(8 + max(0, k - 8)) / world_size + x for k, x in enumerate(inputs)]
    calls, kept = list(range(1, 17)), [o + min(k + 1, 8) for k, o in enumerate(own)]
    ideals = {"rank 0": (calls, [o + 1 for o in own]), "all layers kept": (calls, kept)}
    return {"rank 0": (calls[: len(mine)], mine)}, ideals


def _trained_stack(function, n, width, kind, count, steps, passes):
    """Return the report of a training of a stack in which all numbers are right."""
    starts, seeds = _fresh(count), _fresh(n)
    args, flats = (width, kind, steps, passes, starts), _starts(width, starts)
    report = on_ranks(_stack_probe, function, seeds, args=args, without=WITHOUT)
    gradients = partial(_stack_gradients, width)
    training = partial(trained, flats, gradients, kind, seeds, steps, passes)
    _compare(report, kind, flats, training, passes)
    for rank, result in enumerate(report.results):
        if (used := result["looks"][0]["use"]) > min(map(len, flats)) * NUMBER / 2:
            found = f"After __init__ rank {rank} has {used:,} bytes in use besides its "
            raise Wrong(f"{found}shards.", kind="own_part")
    return report


# ---- what is compared, and told ------------------------------------------------------


def _compare(report, kind, flats, training, passes=1):
    """Raise if parameters are wrong, or optimizer state is more than a shard's."""
    n, right = len(report.results), training()
    for place in range(len(report.results[0]["flats"])):
        held = [_numbers(result["flats"][place]) for result in report.results]
        if not all(_same(own, right[place // passes]) for own in held):
            raise _wrong(held, right, place // passes, training)
    shard, each = sum(-(-len(flat) // n) for flat in flats), STATE[kind] * NUMBER
    for rank, result in enumerate(report.results):
        if result["state"] > each * shard or not result["tensors"]:
            found = f"Rank {rank} holds {result['state']:,} bytes of optimizer state, "
            found += f"where {each * shard:,} are enough.\nmake_optimizer got "
            found += f"{result['handed']:,} elements; the rank's shard has {shard:,}."
            raise Wrong(found, kind="state")


def _same(one, other, most=1e-9):
    return one.shape == other.shape and bool(_close(one, other, most).all())


def _close(one, other, most=1e-9):
    return (one - other).abs() <= most * other.abs().clamp(min=1)


def _wrong(held, right, step, training):
    """Return what is wrong with the parameters after a step; held: each rank's."""
    wanted = right[step]
    rank = next(r for r, own in enumerate(held) if not _same(own, wanted))
    if held[rank].shape != wanted.shape:
        found = f"Rank {rank} called layers of {len(held[rank])} parameters in forward"
        return Wrong(f"{found}, where there are {len(wanted)}.", kind="gradient")
    places = (~_close(held[rank], wanted)).nonzero().flatten().tolist()
    pairs = [(t[places[0] :][:9].tolist() for t in (wanted, own)) for own in held]
    rows = [[[f"{x:.8g}" for x in numbers] for numbers in pair] for pair in pairs]
    lines = [f"The parameters after step {step}:", *side_by_side(rows, rank, 0)]
    lines.append(f"Position {places[0]} on rank {rank} is the first to differ; "
                 f"{len(places)} of {len(wanted)} do there.")  # fmt: skip
    return Wrong("\n".join(lines), kind=_like(held, right, step, places, training))


def _like(held, right, step, places, training):
    """Return in a word what made parameters wrong, if that can be seen."""
    n, wanted = len(held), right[step]
    for mistake in MISTAKES:
        there = training(mistake=mistake)[step]
        if all(_same(own, there) for own in held):
            return mistake
    if all(_same(own, wanted, 1e-5) for own in held):
        return "dtype"
    shards = [own.split(-(-len(wanted) // n)) for own in held]
    alone = torch.cat([own[r] for r, own in enumerate(shards) if r < len(own)])
    before = all(_same(own, right[max(0, step - 1)]) for own in held)
    if before or (_same(alone, wanted) and n > 1) or step == 0:
        return "all-gather"
    return "tail" if min(places) >= len(wanted) // n * n else "gradient"


def _sent_in_first_pass(trace, rank):
    """Return the bytes that a rank sent in its first forward, and in its backward."""
    begun = [e.start for e in trace.of(rank, "mark") if e.label in Stack.phases]
    spans, sends = pairwise(begun[:3]), trace.of(rank, "send")
    return [sum(e.bytes for e in sends if a <= e.start < b) for a, b in spans]


def _unit(n, width):
    """Return the bytes of the largest layer, whole and padded."""
    return -(-(width * (width + 1) + 1) // n) * n * NUMBER


def _allowed(look, n, width):
    """Return how many bytes may be in use besides shards and state.

    Two whole layers while a layer works, for one may be on its way, and the full
    gradients of two in backward; then what lies between layers.
    """
    x_bytes, unit, back = BATCH * width * NUMBER, _unit(n, width), "backward, "
    if look["at"] in ("after __init__", "after step"):
        return unit // 2 + 9 * x_bytes
    later = 0 if look["grads"] else 8 * unit // n  # gradients of shards
    return 2 * unit + 32 * x_bytes + (2 * unit + later) * look["at"].startswith(back)


def _kept(looks, sent):
    """Return what kind of memory the last look found too much of."""
    phase = looks[-1]["phase"]
    calls = [look for look in looks if "layer" in look["at"]]
    if phase == "backward" and looks[-1]["large"] > 2:
        return "gradients"
    if phase == "forward" and any(look["graph"] for look in calls):
        return "graph"
    if phase == "forward" and all(back <= 1.05 * forward for forward, back in sent):
        return "once"
    return "kept layers"


def _memory_told(rank, looks, n, width):
    lines = [f"{'':>18}  {'in use':>10}  {'allowed':>10}  whole layers"]
    for look in looks[-10:]:
        told = [", ".join(map(str, look["whole"]))] * bool(look["whole"])
        told += [f"{look['large']} more"] * bool(look["large"])
        use = f"{look['use']:>10,}  {_allowed(look, n, width):>10,}"
        lines += [f"{look['at']:>18}  {use}  {' and '.join(told) or 'none'}"]
    lines[-1] += "  ← too much"
    lines += [f"Bytes besides shards and optimizer state, on rank {rank}. One whole"]
    lines += [f"layer has {_unit(n, width):,}. The last column names layers that were"]
    return "\n".join([*lines, "called, and counts other tensors as large."])


def _said(*words):
    return lambda facts: any(each in str(facts["failure"].cause) for each in words)


def _is(*kinds):
    return lambda facts: facts["kind"] in kinds


# fmt: off
HINTS = [
    Hint(_said("parameters, and was given", "gradient of size", "size of tensor",
               "expanded size", "does not fit"), [
        "Two lengths do not fit. Padding belongs to the shards, not to the layer: "
        "which of the two is padded, and which is not?",
        "10 elements on 4 ranks: shards of 2 hold 8 of them. How long must equal "
        "shards be to hold all ten, and what has to be cut off after gathering?"]),
    Hint(_said("not require grad", "not have been used", "leaf", "without a graph"), [
        "In backward, full and x both need requires_grad_() before the layer is "
        "called; the tensors that an optimizer steps need none: clone() makes them.",
        "The message names the line. For which tensors does it ask for gradients, "
        "and are these the very ones that the layer was called with?"]),
    Hint(_is("tail"), [
        "The last numbers are never trained: n does not divide the length, and the "
        "shards were rounded down. Pad, so that n equal shards hold everything.",
        "10 elements and 4 ranks: shards of 2 hold 8, and shards of 3 have room for "
        "12. Which is better for the last two?"]),
    Hint(_is("all-gather"), [
        "An all-gather is missing, or its result is not written where it is read, or "
        "index r of what ring_all_gather returns is not what your rank r owns.",
        "Print in step what the optimizer's tensor is before and after: does it "
        "change? Then who tells rank 0 what the shard of rank 1 is now?"]),
    Hint(_is("last pass"), [
        "The gradient of the first pass is lost. A second backward before the step "
        "has to add to what is there.",
        "Plain autograd has the same situation when backward is called twice. What "
        "is in p.grad then?"]),
    Hint(_is(*MISTAKES), [
        "One process gets these numbers if the ranks' gradients are summed, or "
        "averaged twice, or those of the step before are kept, or the optimizer is "
        "made anew.",
        "By how much did a position change in the first step, and by how much should "
        "it have? If that is right: where is the momentum, and who clears .grad?"]),
    Hint(_is("dtype"), [
        "A tensor on the way has fewer digits than the parameters: torch.zeros makes "
        "float32 unless told otherwise. flat.new_zeros makes what fits flat."]),
    Hint(_is("gradient"), [
        "The gradients are not those of one process. In which order does backward "
        "take layers and inputs, and does each shard get its own positions of the "
        "mean?",
        "Backward begins with the last layer, on the x that it had in forward, and "
        "goes on with the gradient of that x. At which end of full's gradient is "
        "padding?"]),
    Hint(_is("state"), [
        "The optimizer was made over all parameters, or of nothing, or twice: it "
        "gets a list of what this rank steps. Which shard of the parameters is that?",
        "How many elements did make_optimizer get, and how many are in one shard?"]),
    Hint(_is("own_part"), [
        "A slice or a chunk is a view, and keeps all of the tensor that it is a view "
        "of. Does own_part return memory of its own, and does a list keep the "
        "tensors?",
        "A slice of 10 elements of a tensor of 40 keeps how many in memory? What "
        "kind of copy keeps 10?"]),
    Hint(lambda f: f["sent"], [
        "A reduce-scatter or an all-gather moves (n-1)/n of the parameters, and an "
        "all-reduce alone is two of these. Who needs a mean of all gradients whole?",
        "Count the calls for one layer: a gathering in forward, and in backward "
        "another and a reduce-scatter. Which of yours is one too many?"]),
    Hint(_is("gradients"), [
        "Full gradients of several layers are in memory. What ring_reduce_scatter "
        "returns is a view of the tensor that it was given. What does .grad have to "
        "be instead?",
        "Print the length of the shard's .grad, and of the storage beneath it. If "
        "they agree, which list or attribute of yours holds the full gradients?"]),
    Hint(_is("graph"), [
        "What the layers returned in forward had graphs of autograd. What does such "
        "a graph hold on to, and who needs it before backward comes?",
        "In forward nothing asks for gradients: in backward the layer is called once "
        "more for that. Under which torch setting does a layer return no graph?"]),
    Hint(_is("once"), [
        "Backward gathers nothing: it uses full parameters that were kept since "
        "forward. Let them go there, and gather again.",
        "Each layer is needed again, but late. What costs a little sending, and "
        "saves all this memory?"]),
    Hint(_is("kept layers"), [
        "Layers are there before their turn, or copies of them or inputs after it. "
        "Which list or attribute holds them, or the graph of an output?",
        "Write down all names that are alive in your function at the moment that the "
        "table names, and what each of them keeps, also as a view or in a graph."]),
    Hint(_is("others"), [
        "The rank grows with each layer, and not by tensors. What of a layer that "
        "has had its turn is still there: a list of numbers, an array, bytes?",
        "Which line turns a tensor into something else, with tolist, numpy or bytes?"]),
]
