"""Exercise 11: gradients in buckets, averaged over ranks while backward goes on.

Ranks train a small model, each with samples of its own; one process has those of all.
"""

from functools import partial
from itertools import chain, pairwise
from random import SystemRandom

import torch
from torch import nn

from distlab.checks.kit import Hint, Wrong, call, called, check, on_ranks
from distlab.checks.kit.tables import by_key
from distlab.collectives import ring_all_reduce

_TRAINING = ("buckets", "data_parallel", "fsdp", "horovod", "zero")
WITHOUT = tuple(f"distlab.train.{name}" for name in _TRAINING)
SIZES = {  # of the layers; and room in the first bucket and in others, in bytes
    "layers": ([6, 7, 8, 9, 8, 3], (600, 1000)),
    "tied": ([6, 6, 6, 6, 9, 2], (200, 700)),
    "types": ([6, 7, 8, 8, 7, 3], (300, 900)),
    "experts": ([6, 4, 4, 4, 2], (100, 165)),
}


class ChainModel(nn.Sequential):
    """Layers in a chain; "tied" uses one weight twice and has a layer that is frozen.

    In "types" some are of float32. In "experts" a sample uses one of two layers, so
    that a rank may not use one, or gets their gradients in another order.
    """

    def __init__(self, name):
        torch.manual_seed(0)  # the same on all ranks
        super().__init__(*(nn.Linear(*size) for size in pairwise(SIZES[name][0])))
        self.double().name = name
        if name == "tied":
            self[1].weight = self[0].weight
            self[2].requires_grad_(False)
        if name == "types":
            self[0].float(), self[3].float()
        if name == "experts":
            self[0].bias = self[1].bias = None  # so that no two buckets are as long
        self.trained = {n: p for n, p in self.named_parameters() if p.requires_grad}

    def mean_loss(self, samples):
        """Return the mean loss of samples, whose first number chooses the expert."""
        x = torch.tensor(samples, dtype=torch.float64)
        kinds = 1 + (x[:, 0] > 0).long()
        for place, layer in enumerate(self):
            if self.name != "experts" or place in (0, 3):
                x = torch.tanh(layer(x.to(layer.weight.dtype)))
            elif place == 1:
                parts = [(k, x[kinds == k]) for k in dict.fromkeys(kinds.tolist())]
                x = torch.cat([torch.tanh(self[k](part)) for k, part in parts])
        return ((x.double() - 1) ** 2).sum(dim=1).mean()


def in_buckets(parameters, room, bucket_bytes):
    """Return the expected buckets; room: the bytes of the first one."""
    buckets, left = [], 0
    for p in reversed([p for p in parameters if p.requires_grad]):
        if not buckets or p.dtype != buckets[-1][0].dtype or p.nbytes > left:
            left, room = room, bucket_bytes
            buckets.append([])
        buckets[-1].append(p)
        left -= p.nbytes
    return buckets


class Turns:
    """A monitor of one step on this rank; a call out of turn raises.

    missing: parameter -> number of gradients to come; overlaps: True if each bucket
    must start as soon as it is full, and no call may wait before all have started.
    """

    def __init__(self, comm, buckets, microbatches, overlaps):
        self.comm, self.buckets, self.started, self.waited = comm, buckets, [], []
        self.overlaps = overlaps and comm.world_size > 1
        self.place = {p: k for k, bucket in enumerate(buckets) for p in bucket}
        self.missing = dict.fromkeys(self.place, microbatches)
        self.sizes = [(sum(p.numel() for p in b), b[0].dtype) for b in buckets]

    def gradient(self, p):
        """Record a parameter's gradient; raise if a bucket should have started."""
        due, place = len(self.started), self.place[p]
        early = f"bucket {place} with all its gradients, yours: started before the last"
        _require(place not in self.started, early)
        if self.overlaps and due < len(self.buckets):
            late = f"bucket {due} to start when it is full, yours: backward goes on"
            _require(any(self.missing[p] > 0 for p in self.buckets[due]), late)
        self.missing[p] -= 1

    def all_reduce(self, comm, tensor):
        """Sum a buffer over all ranks; it is the learner's argument `all_reduce`."""
        self.start(self.all_reduce, tensor).wait()

    def start(self, function, tensor):
        """Start an all-reduce as `comm.start` does, if it is this bucket's turn."""
        _require(function == self.all_reduce, "comm.start(all_reduce, buffer)")
        size, due = (tensor.numel(), tensor.dtype), len(self.started)
        *known, yours = (f"{count} {dtype}" for count, dtype in [*self.sizes, size])
        wanted = f"a buffer of one bucket ({', '.join(known)}), yours: {yours}"
        _require(size in self.sizes, wanted)
        place = self.sizes.index(size)
        right = place == due if self.overlaps else place not in self.started
        _require(right, f"bucket {due} to start next, yours: bucket {place}")
        self.started.append(place)
        request = self.comm.started.start(ring_all_reduce, self.comm, tensor)
        wait, request.wait = request.wait, lambda: (self._wait(place), wait())[1]
        return request

    def _wait(self, place):
        right = len(self.started) == len(self.buckets) or not self.overlaps
        _require(right, f"no wait before the last start, yours: for bucket {place}")
        self.waited.append(place)

    def end(self):
        """Raise if a bucket was not started or not waited for, or hooks are left."""
        left = {*range(len(self.buckets) * (self.comm.world_size > 1))} - {*self.waited}
        _require(not left, f"a start and a wait for each bucket, yours: not for {left}")
        hooks = sum(len(p._post_accumulate_grad_hooks or ()) for p in self.place)
        hooks += sum(
            len(p._backward_hooks) - 1 for p in self.place
        )  # one is the check's
        _require(not hooks, f"no hook at the end of a step, yours: {hooks}")


def _require(right, expected):
    if not right:
        raise RuntimeError(f"expected: {expected}")


def _train(comm, function, name, overlaps, own):
    """Train on this rank's samples; return the gradients of each step, by name."""
    model, held = ChainModel(name), []
    buckets = in_buckets([*model.parameters()], *SIZES[name][1])
    for p in model.trained.values():
        p.register_hook(lambda _, p=p: turns.gradient(p))
    for samples, total in zip(*own, strict=True):
        model.zero_grad()
        turns = Turns(comm, buckets, len(samples), overlaps)
        comm.start = turns.start
        microbatches = [(partial(model.mean_loss, each), len(each)) for each in samples]
        called(function, comm, microbatches, total, buckets, turns.all_reduce)
        comm.started.drain()
        turns.end()
        grads = {n: p.grad for n, p in model.trained.items() if p.grad is not None}
        held.append({n: gradient.tolist() for n, gradient in grads.items()})
        _descend(model)
    return held


def _descend(model):
    """Take an SGD step; an optimizer would take a second to import in every process."""
    for p in model.trained.values():
        p.data -= 0.1 * (0.0 if p.grad is None else p.grad)


def _after_backward(function, comm, microbatches, total, buckets, all_reduce):
    microbatches[0][0]().backward()
    called(function, comm, buckets, all_reduce)


def _laid_out(function, name, limits):
    """Return the buckets for each limit, as names and bytes."""
    model = ChainModel(name)
    words = {id(p): f"{n}:{p.nbytes}" for n, p in model.named_parameters()}
    made = [called(function, [*model.parameters()], *limit) or [] for limit in limits]
    named = [[[words.get(id(p), "?") for p in b] for b in buckets] for buckets in made]
    return [{f"{k:2}": b for k, b in enumerate(buckets)} for buckets in named]


@check("{} ranks, model {!r}")
def averaged(functions, n, name):
    """Check that buckets follow the rule, and gradients become means over the ranks."""
    limit = SIZES[name][1]
    buckets = in_buckets([*ChainModel(name).parameters()], *limit)
    met = [sum(p.nbytes for p in bucket) for bucket in buckets[:2]]
    limits = [limit, (1, 1), (10**6, 10**6), met]
    yours = call(_laid_out, functions[0], name, limits, without=WITHOUT)
    right = _laid_out(in_buckets, name, limits)
    for limit, *both in zip(limits, right, yours, strict=True):
        if table := by_key(("bucket", "expected", "yours"), *both):
            found = "first_bytes={}, bucket_bytes={}; name:bytes".format(*limit)
            raise Wrong(f"{found}\n{table}", layout=True)
    _check(partial(_after_backward, functions[1]), name, [[[4]] * n] * 2)


@check("{} ranks, model {!r}")
def accumulated(function, n, name):
    """Check several microbatches a step, on ranks with more, fewer or no samples."""
    _check(function, name, _counts(n))


@check("{} ranks, model {!r}")
def overlapped(function, n, name):
    """Check the same from hooks: each bucket starts in backward, as soon as full."""
    _check(function, name, _counts(n), overlaps=True)


def _counts(n):
    """Return the numbers of samples in the microbatches, for each step and rank."""
    even, uneven = [[4, 2 + r % 2] for r in range(n)], [[4, 4, 1], [2], [], [3, 3]]
    return [even, [uneven[r % 4] for r in range(n)], [[5 - r % 2] for r in range(n)]]


def _samples(rank, count):
    """Draw samples, those of rank 1 all for one expert; ranks begin with either."""
    signs = [(-1) ** (rank + place * (rank != 1)) for place in range(count)]
    draw = SystemRandom().random
    return [[sign * (1 + draw()), *(draw() for _ in range(5))] for sign in signs]


def _check(function, name, counts, *, overlaps=False):
    """Train on ranks and in one process; raise where gradients or bytes differ."""
    n, model = len(counts[0]), ChainModel(name)
    drawn = [[[_samples(r, c) for c in of[r]] for of in counts] for r in range(n)]
    inputs = [(own, [sum(map(sum, of_ranks)) for of_ranks in counts]) for own in drawn]
    how = {"args": (name, overlaps), "without": WITHOUT}
    report = on_ranks(_train, function, inputs, **how)
    for step in range(len(counts)):
        model.zero_grad()
        model.mean_loss([x for own in drawn for x in chain(*own[step])]).backward()
        for rank, result in enumerate(report.results):
            for each, p in model.trained.items():
                _compare(step, rank, each, p.grad, result[step].get(each))
        _descend(model)
    needed = 2 * (n - 1) * len(counts) * sum(p.nbytes for p in model.trained.values())
    if (sent := sum(map(report.trace.bytes_sent, range(n)))) != needed:
        raise Wrong(f"Bytes sent: expected {needed:,}, yours {sent:,}.", sent=sent)


def _compare(step, rank, name, right, held):
    """Raise if a rank's gradient is not that of one process."""
    mine = torch.full_like(right, torch.nan) if held is None else torch.tensor(held)
    mine, close = mine.to(right), partial(torch.allclose, rtol=1e-4, atol=1e-5)
    if not close(mine, right):
        at = int((mine - right).abs().argmax())
        one, other = right.flatten()[at], mine.flatten()[at]
        found = f"Step {step + 1}, rank {rank}, gradient of {name}, element {at}:\n"
        found += f"expected {one:.6g}, yours {other:.6g} (nan: p.grad is None)"
        summed = other / one > 1.5 and close(mine, other / one * right)
        raise Wrong(found, summed=summed)


def _said(*words):
    return lambda facts: any(each in str(facts["failure"].cause) for each in words)


# fmt: off
HINTS = [
    Hint(lambda f: f["layout"], [
        "Is this the order of registration? Buckets begin with the last parameter, and "
        "the next joins the bucket opened last if its dtype and its bytes fit.",
        "Only the first bucket has room for first_bytes. A limit may be met exactly."]),
    Hint(_said("a buffer of one bucket"), [
        "A buffer holds the gradients of the parameters of one bucket, all of them, "
        "with zeros for one that has no gradient.",
        "How many elements has yours? One all-reduce for each parameter is too many."]),
    Hint(_said("with all its gradients"), [
        "A bucket is full when each of its parameters has had its gradient from every "
        "microbatch. Until the last microbatch gradients only add up on their rank.",
        "How often do hooks fire for a bucket of 2 parameters and 3 microbatches?"]),
    Hint(_said("to start next"), [
        "Hooks fire in another order on other ranks, and all-reduces meet in the order "
        "of starting: once each, and a full bucket has to wait for those before it.",
        "What has to be remembered of bucket 1 until bucket 0 has gone?"]),
    Hint(_said("to start when it is full"), [
        "A hook that you register on a parameter is called when its gradient is there. "
        "What could be started there, while backward goes on?",
        "A gradient that fills one bucket may find the next one full already."]),
    Hint(_said("no wait before", "comm.start("), [
        "Inside of a hook nothing may wait: comm.start(all_reduce, buffer) returns at "
        "once. After the last start, wait for all, then read their buffers.",
        "Look for wait() inside of your hook, and for all_reduce called without "
        "comm.start. Keep (bucket, buffer, request) in a list; the loop that waits "
        "stands after the last backward."]),
    Hint(_said("no hook at the end"), [
        "A hook is called in every later step, too, until its handle's remove(). How "
        "many hooks has a parameter after 100 steps of yours?",
        "Keep the handles that register_post_accumulate_grad_hook returns, and remove "
        "each of them when the last backward has ended."]),
    Hint(lambda f: f.get("sent") or _said("a start and a wait")(f), [
        "Every bucket travels once in every step on every rank, and nothing else does: "
        "as zeros, where no sample has used its parameters. Wait for each.",
        "Go through your buckets on a rank without samples, and for a parameter with "
        "p.grad None: is there one start and one wait for each? A loop over what the "
        "hooks have started misses some."]),
    Hint(lambda f: f["summed"], [
        "This is the sum of all ranks' gradients, where the mean over all samples is "
        "expected. Which step is left between the all-reduce and p.grad?",
        "Look at unpack. What arrives is a sum over world_size ranks; which lines "
        "does a gradient pass between `buffer` and `p.grad`, and where could the "
        "division stand?"]),
    Hint(lambda f: "summed" in f, [
        "Follow one gradient: from p.grad into the buffer, through all_reduce, back "
        "into p.grad. Does each of all `total` samples count the same?",
        "A loss is a mean: how much does a microbatch of 1 weigh beside one of 4?"]),
    Hint(_said("NoneType", "non-empty", "has no attribute 'backward'"), [
        "all_reduce returns None. A parameter that no sample of this rank has used has "
        "p.grad None and counts as zeros, also where a rank has no samples at all.",
        "Look at pack: what stands in the buffer for a p.grad of None? Then look for "
        "a name that gets the result of all_reduce, and for a loss that is used "
        "after a loop that may not run."]),
]
