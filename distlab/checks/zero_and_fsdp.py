"""Exercise 12: ZeRO 1 and ZeRO 3, judged by values, memory, messages and time.

The learner's class trains on ranks, each with data of its own; one process trains the
same with the data of all. Layers record their arguments, and the parameters in memory.
On the virtual clock a layer works for twice as long as its all-gather takes, and its
backward for twice that.
"""

from functools import partial
from itertools import pairwise, product
from math import isclose
from random import SystemRandom
from types import SimpleNamespace

import torch
import torch._dynamo  # an optimizer would, in every rank
from torch.multiprocessing.reductions import StorageWeakRef

from distlab.checks.kit import Hint, Wrong, call, called, check, difference, on_ranks
from distlab.errors import WorldFailed
from distlab.launch.simulate import simulate
from distlab.links import Link
from distlab.simulated import Uniform
from distlab.trace import Event, Trace

WITHOUT = ("distlab.train.zero", "distlab.train.shards", "distlab.train.fsdp")
NUMBER, BATCH = 8, 2  # float64
LINK = Link(latency_s=1e-6, bytes_per_s=1e6)
OPTIMIZERS = {
    "momentum": partial(torch.optim.SGD, lr=0.1, momentum=0.9),
    "Adam": partial(torch.optim.Adam, lr=0.05),
}
_fresh = partial(SystemRandom().sample, range(2**60))  # seeds drawn anew


@check("{} ranks, {} parameters, {}")
def sharded_optimizer(function, n, length, kind):
    """Check that ZeRO 1 trains one flat tensor as one process does, in shards."""
    (start, *seeds), shard = _fresh(1 + n), -(-length // n)
    args = length, kind, start
    report = on_ranks(_flat_probe, function, seeds, args=args, without=WITHOUT)

    def gradients(flats, seed):
        return [_slope(flats[0], seed)]

    right = trained([_drawn(start, length)], gradients, kind, seeds, 3)
    _compare(report, right, shard)
    _check_traffic(report, 3 * 2 * (n - 1) * shard, "3 steps of 2(n-1)/n")


@check("{} ranks, 8 layers of width {}, {}, passes per step: {}")
def sharded_layers(function, n, width, kind, passes):
    """Check that ZeRO 3 trains a stack of layers so, and frees layers between uses."""
    starts, seeds, args = _fresh(8), _fresh(n), (width, kind, 2, passes)
    how = {"args": (*args, starts), "without": WITHOUT}
    _check_stack(on_ranks(_stack_probe, function, seeds, **how), *args, starts, seeds)


@check("{} ranks, {} layers of width {}, on the virtual clock")
def prefetched_layers(function, n, count, width):
    """Check the same with collectives overlapped by layers, one layer ahead."""
    starts, seeds, args = _fresh(count), _fresh(n), (width, "momentum", 1, 2)
    gathered = NUMBER * (n - 1) * -(-(width * (width + 1) + 1) // n)
    gather_s = (n - 1) * LINK.seconds(gathered / (n - 1))
    given = seeds, 2 * gather_s, *args, starts
    results, rows = call(_simulated, function, *given, without=WITHOUT)
    trace = Trace(n, [Event(*row) for row in rows])
    report = SimpleNamespace(results=results, trace=trace.since("training"))
    _check_stack(report, *args, starts, seeds)
    _check_overlap(report.trace, count, gathered, gather_s)
    for result in results:
        for at, pending in result["pending"]:
            if pending > 2:
                found = f"When {at} began, {pending} collectives had been started and "
                raise Wrong(f"{found}not waited for; two are enough.", pending=pending)


def memory_over_a_pass(function, world_size: int = 4) -> tuple[dict, dict]:
    """Return the layers in rank 0's memory at each layer's call, and the ideals."""
    args = 40, "momentum", 1, 1, _fresh(8)
    report = on_ranks(_stack_probe, function, _fresh(world_size), args=args)
    looks, calls = report.results[0]["looks"], list(range(1, 17))
    mine = [held for at, held in looks if at[:5] != "after" and at[:8] != "gradient"]
    kept = calls, [min(k, 8) for k in calls]
    ideals = {"rank 0": (calls, [1] * 16), "all layers kept": kept}
    return {"rank 0": (calls, mine[:16])}, ideals


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


def _stack_gradients(width, flats, seed):
    flats, y = [f.detach().requires_grad_() for f in flats], _drawn(seed, BATCH, width)
    for flat in flats:
        y = _layer(flat, y)
    return torch.autograd.grad(y, flats, _slope(y.detach(), seed))


class Optimizers(list):
    """The optimizers of a rank; as a function, the argument `make_optimizer`."""

    def __init__(self, kind):
        self.kind = kind

    def __call__(self, tensors):
        self.append(OPTIMIZERS[self.kind](tensors))
        return self[-1]

    def tensors(self):
        """Return the tensors that it was called with."""
        return [t for each in self for g in each.param_groups for t in g["params"]]


def _flat_probe(comm, function, length, kind, start, seed):
    make, flat = Optimizers(kind), _drawn(start, length)
    trainer, seen = called(function, comm, flat, make), [flat.tolist()]
    comm.mark("training")
    for step in range(3):
        trainer.step(_slope(flat, seed + 100 * step))
        seen.append(flat.tolist())
    return {"seen": seen, "stepped": sum(map(len, make.tensors()))}


class Stack:
    """The layers of a rank, each of which measures the memory when it is called.

    seen: the parameters in each forward. looks: (point, memory in layers): full
    parameters of calls, and the excess storage below shards and their .grad.
    pending: (point, number of requests of `comm.start` without a wait) of calls.
    """

    def __init__(self, comm, kind, lengths, work_s):
        self.comm, self.make, self.work_s = comm, Optimizers(kind), work_s
        self.lengths, self.phase, self.seen, self.looks = lengths, "", [], []
        self.layers = [partial(self.layer, i) for i in range(len(lengths))]
        self.used, self.pending, self.requests = {}, [], set()
        self.start, comm.start = comm.start, self.started

    def started(self, *what, **options):
        """Start a collective as `comm.start` does; count it until its first wait."""
        request, pending = self.start(*what, **options), object()
        self.requests.add(pending)
        wait = lambda: self.requests.discard(pending) or request.wait()  # noqa: E731
        return SimpleNamespace(wait=wait, is_completed=request.is_completed)

    def layer(self, i, full, x):
        """Compute layer i: record its parameters and the memory, and return y."""
        if (got := len(full)) != (need := self.lengths[i]):
            raise ValueError(f"layer {i} has {need} parameters, and was given {got}")
        if self.phase == "forward":
            self.seen[-1] += full.tolist()
        storage = full.untyped_storage()
        self.used.setdefault(storage._cdata, StorageWeakRef(storage))
        self.pending.append((f"{self.phase}, layer {i}", len(self.requests)))
        self.work(f"{self.phase}, layer {i}", self.work_s)
        y = _layer(full, x)
        if y.requires_grad:
            again = f"gradient, layer {i}", 2 * self.work_s
            y.register_hook(lambda _: self.work(*again))
        return y

    def work(self, at, seconds=0.0):
        """Record the memory in use, then let time pass."""
        find = torch.UntypedStorage._new_with_weak_ptr
        found = [find(weak.cdata) for weak in self.used.values()]
        held = sum(storage.nbytes() for storage in found if storage is not None)
        for t in [t for p in self.make.tensors() for t in (p, p.grad) if t is not None]:
            held += t.untyped_storage().nbytes() - t.nbytes
        self.looks.append((at, round(held / NUMBER / max(self.lengths), 2)))
        with self.comm.work(at, seconds=seconds):
            pass

    def do(self, phase, method):
        """Call a method of the trainer, and return its result."""
        self.phase = phase
        returned = method()
        self.work(f"after {phase}")
        return returned


def _stack_probe(comm, function, width, kind, steps, passes, starts, seed, work_s=0.0):
    stack = Stack(comm, kind, list(map(len, _starts(width, starts))), work_s)
    given = list(stack.layers), _starts(width, starts), stack.make
    trainer = called(function, comm, *given)
    del given
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
    looks = {"looks": stack.looks, "pending": stack.pending}
    return {"seen": stack.seen, "stepped": stepped, **looks}


def _simulated(function, seeds, work_s, *args):
    """Return each rank's result on the virtual clock, and the trace as rows."""

    def rank(comm):
        return _stack_probe(comm, function, *args, seeds[comm.rank], work_s)

    try:
        done = simulate(rank, len(seeds), args=(), fabric=Uniform(LINK)).report()
    except WorldFailed as failure:
        raise failure.cause or failure from None  # hints are chosen by the cause
    return done.results, [tuple(event) for event in done.trace.events]


def _check_stack(report, width, kind, steps, passes, starts, seeds):
    """Raise unless parameters, memory and messages of a stack are right."""
    n, flats = len(seeds), _starts(width, starts)
    right = trained(flats, partial(_stack_gradients, width), kind, seeds, steps, passes)
    shard = sum(-(-len(flat) // n) for flat in flats)
    _compare(report, right, shard, passes)
    for rank, result in enumerate(report.results if n > 1 else []):
        for at, held in result["looks"]:
            if held > (1.1 if at.startswith("after") else 2.1):
                found = f"Rank {rank} has {held} layers in memory besides its parts, "
                raise Wrong(f"{found}at: {at}.", at=at)
    most = (3 * steps * passes + 1) * (n - 1) * shard  # a forward shows the result
    _check_traffic(report, most, f"3(n-1)/n in each of {steps * passes}, and a forward")


def _compare(report, right, shard, passes=1):
    """Raise if parameters differ from one process's, or a rank steps too many."""
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


def _check_traffic(report, most, described):
    trace = report.trace.since("training")
    sent = [trace.bytes_sent(rank) for rank in range(len(report.results))]
    if max(sent) > most * NUMBER:
        lines = [f"rank {rank}: sent {b:,} bytes" for rank, b in enumerate(sent)]
        lines += [
            f"{most * NUMBER:,} are enough: {described} of the padded parameters."
        ]
        raise Wrong("\n".join(lines), sent=sent)


def _check_overlap(trace, count, gathered, gather_s):
    """Raise if rank 0 gathers more than one layer ahead, or waits needlessly.

    gathered, gather_s: bytes and seconds of an all-gather.
    """
    works = [e for e in trace.of(0, "work") if not e.label.startswith("after")]
    uses = [event for event in works if not event.label.startswith("backward")]
    for k, use in enumerate(uses):
        got = sum(e.bytes for e in trace.of(0, "recv") if e.end <= use.start)
        passes, place = divmod(k, 2 * count)
        reduced = passes * count + max(0, place - count)
        most = k + 2 + reduced
        if (ahead := round(got / gathered) - most) > 0:
            found = f"When {use.label} began on rank 0, {ahead + 1} layers after it "
            raise Wrong(f"{found}had been gathered; one is enough.", ahead=ahead)
    target_s = (7 + 9 * count * 2) * gather_s  # three forwards and two backwards
    if trace.duration_s() > target_s + gather_s / 2:
        waits = {b.label: (b.start - a.end) / gather_s for a, b in pairwise(works)}
        first = "forward, layer 0", f"backward, layer {count - 1}"
        waits = {at: w for at, w in waits.items() if w > 0.25 and at not in first}
        lines = ["The values are right. It took {:.1f} ms, and {:.1f} are enough."]
        lines[0] = lines[0].format(1e3 * trace.duration_s(), 1e3 * target_s)
        lines += [f"Rank 0 waited, in times of {1e3 * gather_s:.2f} ms, before"]
        lines += [f"{at:>18}  {waited:5.2f}" for at, waited in [*waits.items()][:9]]
        phases = {at.partition(",")[0]: waited for at, waited in waits.items()}
        raise Wrong("\n".join(lines), waits=phases)


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
        "A reduce-scatter or an all-gather moves $(n-1)/n$ of the parameters, and an "
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
    Hint(lambda f: f["pending"], [
        "At most one all-gather and one reduce-scatter are under way when a layer "
        "begins. Wait for the reduce-scatter before it, and keep nothing of that.",
        "A request keeps the gradients of a whole layer until its wait(). How many "
        "does your list of requests hold at the last layer?"]),
    Hint(lambda f: f["ahead"], [
        "All-gathers run ahead of the layers, and memory fills with what they bring. "
        "When layer i begins, start that of the next layer, and no other.",
        "How many all-gathers are started before the first layer is called?"]),
    Hint(lambda f: "forward" in f["waits"], [
        "In forward a layer waits for its own all-gather. While layer i works, that of "
        "layer i + 1 has to be under way: comm.start it before layer i is called.",
        "Which line starts the all-gather of layer 1? Has layer 0 worked by then?"]),
    Hint(lambda f: f["waits"]["backward"] > 1.5, [
        "In backward a layer waits for two collectives, the reduce-scatter of the one "
        "before it and its own all-gather. What is started runs in order.",
        "Which comes first in your backward of layer i: the start of the all-gather "
        "for layer i - 1, or that of the reduce-scatter of layer i's gradients?"]),
    Hint(lambda f: "waits" in f, [
        "In backward a layer waits for one collective. A call without comm.start waits "
        "for all that was started, then for itself. Is the reduce-scatter such a call, "
        "or is its wait() before the next layer has worked?",
        "Layer i's mean gradient is needed by the step, not by layer i - 1. After "
        "which layer's work has its reduce-scatter ended without any waiting?"]),
]
