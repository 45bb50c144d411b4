"""Exercise 11: gradients in buckets, averaged over ranks while backward goes on.

Ranks train a small model, each with samples of its own; one process has the samples of
all. Marks in the trace say in which order a rank had gradients and started all-reduces.
"""

import random
import threading
from functools import partial
from itertools import pairwise, zip_longest

import torch
from torch import nn

from distlab.checks.kit import Hint, Played, Wrong, call, called, check, on_ranks
from distlab.collectives import ring_all_reduce

_TRAINING = ("buckets", "data_parallel", "fsdp", "horovod", "zero")
WITHOUT = tuple(f"distlab.train.{name}" for name in _TRAINING)
SIZES = {  # of the layers; and room in the first bucket and in others, in bytes
    "layers": ([6, 7, 8, 9, 8, 3], (600, 1000)),
    "tied": ([6, 6, 6, 6, 9, 2], (200, 700)),
    "types": ([6, 7, 8, 8, 7, 3], (300, 900)),
    "experts": ([6, 4, 4, 4, 2], (100, 165)),
}
UNEVEN = [[4, 4, 1], [2], [], [3, 3]]
CALLS = ("call", "start", "side")
MARKS = (*CALLS, "wait", "gradient", "microbatch", "left", "end")


class Model(nn.Module):
    """Layers in a chain; "tied" uses one weight twice and has a layer that is frozen.

    In "types" some are of float32. In "experts" a sample visits one of two layers, so
    that a rank may not use one, or has their gradients in another order.
    """

    def __init__(self, name, seed):
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            layers = [nn.Linear(*size) for size in pairwise(SIZES[name][0])]
        self.name, self.layers = name, nn.ModuleList(layers).double()
        if name == "tied":
            layers[1].weight = layers[0].weight
            layers[2].requires_grad_(False)
        if name == "types":
            [layer.float() for layer in layers[::3]]
        if name == "experts":
            layers[0].bias = layers[1].bias = None  # so that no two buckets are as long

    def forward(self, x):
        """Return what the layers make of samples."""
        kinds = (x[:, 0] > 0).long()
        for place, layer in enumerate(self.layers):
            if self.name != "experts" or place in (0, 3):
                x = torch.tanh(layer(x.to(layer.weight.dtype)))
            elif place == 1:
                found = torch.zeros_like(x)
                for kind in dict.fromkeys(kinds.tolist()):
                    own = kinds == kind
                    found[own] = torch.tanh(self.layers[1 + kind](x[own]))
                x = found
        return x.double()


def _samples(rank, seed, step, number, count):
    """Return samples; on one rank of each step but the first all visit one expert."""
    draw = torch.Generator().manual_seed(seed + 100 * step + number)
    x = torch.randn(count, 6, generator=draw, dtype=torch.float64)
    alone = step and rank == step - 1
    signs = [(-1.0) ** (step if alone else rank + place) for place in range(count)]
    x[:, 0] = x[:, 0].abs() * torch.tensor(signs)
    return x


def _mean_loss(model, x):
    return ((model(x) - 1) ** 2).sum(dim=1).mean()


def _layout(parameters, first_bytes, bucket_bytes):
    """Return the names in each bucket; parameters: (name, parameter) as registered."""
    buckets, room, dtype = [], 0, None
    for name, p in reversed([(n, p) for n, p in parameters if p.requires_grad]):
        if p.dtype != dtype or p.nbytes > room:
            room, dtype = bucket_bytes if buckets else first_bytes, p.dtype
            buckets.append([])
        buckets[-1].append(name)
        room -= p.nbytes
    return buckets


# ---- in a rank -----------------------------------------------------------------------


def _layout_probe(functions, name, seed, limits):
    """Return the names in a learner's buckets; None for what is no parameter."""
    model, held = Model(name, seed), []
    name_of = {id(p): n for n, p in model.named_parameters()}
    for limit in limits:
        given = list(model.parameters())
        made = called(functions[0], given, *limit)
        if list(map(id, given)) != list(map(id, model.parameters())):
            return "in_buckets changed the list that it was given."
        lists = isinstance(made, list | tuple)
        if not lists or not all(isinstance(b, list | tuple) for b in made):
            return f"in_buckets returned {str(made)[:60]}, and no list of lists."
        held.append([[name_of.get(id(p), "?") for p in b] for b in made])
    return held


def _probe(comm, function, kind, name, seed, buckets, totals, own):
    rank_seed, counts = own
    model = Model(name, seed)
    parameters = dict(model.named_parameters())
    given = [[parameters[n] for n in names] for names in buckets]
    all_reduce, trained = _noting(comm, given), []
    for n, p in parameters.items():
        if p.requires_grad:
            p.register_hook(lambda _, n=n: comm.mark(f"gradient {n}"))

    def forward(step, k, count):
        comm.mark(f"microbatch {k}")
        return _mean_loss(model, _samples(comm.rank, rank_seed, step, k, count))

    for step, sizes in enumerate(counts):
        model.zero_grad()
        comm.mark("step")
        batches = [(partial(forward, step, k, c), c) for k, c in enumerate(sizes)]
        if kind == "averaged":
            batches[0][0]().backward()
            called(function[1], comm, given, all_reduce)
        else:
            called(function, comm, batches, totals[step], given, all_reduce)
        comm.started.drain()
        for n, p in parameters.items():
            if p._post_accumulate_grad_hooks:
                comm.mark(f"left {n}")
        comm.mark("end")
        grads = {n: None if p.grad is None else p.grad for n, p in parameters.items()}
        trained.append({n: g if g is None else g.tolist() for n, g in grads.items()})
        with torch.no_grad():
            for n, p in parameters.items():
                if grads[n] is not None:
                    p -= 0.1 * grads[n]
    return trained


def _noting(comm, buckets):
    """Return an all_reduce that marks its calls; starts and waits are marked, too."""
    ring, start, started = ring_all_reduce, comm.start, set()
    sizes = {(sum(p.numel() for p in b), b[0].dtype): k for k, b in enumerate(buckets)}
    ones = {(p.numel(), p.dtype) for bucket in buckets for p in bucket}

    def told(tensor):
        of = tensor.numel(), tensor.dtype
        return f"{sizes.get(of, 'one' if of in ones else '?')} {of[0]}"

    def all_reduce(comm, tensor):
        if id(tensor) in started:
            started.discard(id(tensor))
        else:
            main = threading.current_thread() is threading.main_thread()
            comm.mark(f"{'call' if main else 'side'} {told(tensor)}")
        ring(comm, tensor)

    def noted_start(function, *args, **options):
        if function is not all_reduce or len(args) != 1:
            return start(function, *args, **options)
        comm.mark(f"start {told(args[0])}")
        started.add(id(args[0]))
        request = start(function, *args)
        wait, request.wait = request.wait, lambda: (comm.mark(mark), wait())[1]
        mark = f"wait {told(args[0])}"
        return request

    comm.start = noted_start
    return all_reduce


# ---- the checks ----------------------------------------------------------------------


@check("{} ranks, model {!r}")
def averaged(functions, n, name):
    """Buckets are laid out by the rule, and gradients become means over the ranks."""
    limits, seed = SIZES[name][1], _fresh(1)[0]
    parameters = list(Model(name, seed).named_parameters())
    size_of = {n: p.nbytes for n, p in parameters}
    one, other, *_ = _layout(parameters, *limits)
    met = tuple(sum(size_of[n] for n in bucket) for bucket in (one, other))
    tried = [limits, (1, 1), (10**6, 10**6), met]
    held = call(_layout_probe, functions, name, seed, tried, without=WITHOUT)
    if isinstance(held, str):
        raise Wrong(held, kind="lists")
    for limit, yours in zip(tried, held, strict=True):
        right = _layout(parameters, *limit)
        if yours != right:
            _wrong_layout(parameters, limit, right, yours)
    _trained(functions, n, name, "averaged", [[[4]] * n] * 2)


@check("{} ranks, model {!r}")
def accumulated(function, n, name):
    """Several microbatches a step, and ranks with more, fewer or no samples."""
    _trained(function, n, name, "accumulated", _counts(n))


@check("{} ranks, model {!r}")
def overlapped(function, n, name):
    """The same from hooks: each bucket starts in backward, as soon as it is full."""
    _trained(function, n, name, "overlapped", _counts(n))


def _counts(n):
    """Return the samples in each microbatch, for each step and rank."""
    first, last = ([[4, 2 + r % 2] for r in range(n)], [[5 - r % 2] for r in range(n)])
    return [first, [UNEVEN[r % 4] for r in range(n)], last]


def _fresh(count):
    return [random.SystemRandom().getrandbits(60) for _ in range(count)]


def _trained(function, n, name, kind, counts):
    """Raise for what is wrong in a training with so many samples."""
    seed, *seeds = _fresh(1 + n)
    model = Model(name, seed)
    buckets = _layout(list(model.named_parameters()), *SIZES[name][1])
    totals = [sum(map(sum, of_ranks)) for of_ranks in counts]
    inputs = [(s, [step[rank] for step in counts]) for rank, s in enumerate(seeds)]
    args = kind, name, seed, buckets, totals
    try:
        report = on_ranks(_probe, function, inputs, args=args, without=WITHOUT)
    except Wrong as wrong:
        failure = wrong.facts.get("failure")
        if failure and "ready_made" not in wrong.facts and n > 1:
            _missteps(failure.trace, n, buckets, counts, kind, str(wrong))
        raise
    if n > 1:
        _missteps(report.trace, n, buckets, counts, kind)
    _compare(model, report.results, seeds, counts, buckets)
    needed = 2 * (n - 1) * len(counts)
    needed *= sum(p.nbytes for p in model.parameters() if p.requires_grad)
    if (sent := sum(map(report.trace.bytes_sent, range(n)))) != needed:
        found = f"The gradients are right, but all ranks together sent {sent:,} bytes, "
        raise Wrong(f"{found}where {needed:,} are enough.", kind="bytes")


LIKE = {  # by what a mean loss is weighed, and summed over ranks, in known mistakes
    "right": lambda count, own, total, n: count / total,
    "sum": lambda count, own, total, n: n * count / total,
    "twice": lambda count, own, total, n: count / total / n,
    "microbatches": lambda count, own, total, n: 1 / n,
    "ranks": lambda count, own, total, n: 1 / own / n,
    "samples": lambda count, own, total, n: count / n,
}


def _compare(model, results, seeds, counts, buckets):
    """Train in one process; raise for the first gradient in which a rank differs."""
    n, parameters = len(results), dict(model.named_parameters())
    exact = all(p.dtype == torch.float64 for p in parameters.values())
    most = 1e-7 if exact else 1e-3
    for step, of_ranks in enumerate(counts):
        parts = []  # rank, arguments of `LIKE`, and gradients of a mean loss
        for rank, sizes in enumerate(of_ranks):
            for k, count in enumerate(sizes):
                model.zero_grad()
                _mean_loss(
                    model, _samples(rank, seeds[rank], step, k, count)
                ).backward()
                grads = {name: p.grad for name, p in parameters.items()}
                args = count, len(sizes), sum(map(sum, of_ranks)), n
                parts.append((rank, args, grads))
        for name, p in parameters.items():
            if not p.requires_grad:
                continue
            right = _weighed(parts, "right", name, p)
            held = [result[step][name] for result in results]
            held = [h if h is None else torch.tensor(h, dtype=p.dtype) for h in held]
            wrong = [
                r for r, h in enumerate(held) if h is None or not _close(h, right, most)
            ]
            if wrong:
                place = next(k for k, names in enumerate(buckets) if name in names)
                found = f"Step {step + 1}, gradient of {name} (bucket {place}):\n"
                mine = held[wrong[0]]
                at = 0 if mine is None else int((mine - right).abs().argmax())
                shown = "none" if mine is None else f"{mine.flatten()[at]:.6g}"
                found += f"at position {at} expected {right.flatten()[at]:.6g}, found "
                found += f"{shown} on rank {wrong[0]}.\nIt is wrong on {len(wrong)} of "
                raise Wrong(
                    f"{found}{n} ranks.",
                    kind=_like(wrong[0], mine, parts, name, p, most),
                )
            with torch.no_grad():
                p -= 0.1 * right


def _weighed(parts, like, name, p, rank=None):
    """Return a sum of mean losses' gradients, of all ranks' or one's."""
    chosen = [part for part in parts if rank in (None, part[0])]
    pairs = [(LIKE[like](*args), grads[name]) for _, args, grads in chosen]
    return sum([w * g for w, g in pairs if g is not None], torch.zeros_like(p))


def _close(one, other, most):
    return torch.allclose(one, other, most, most * float(other.abs().max()))


def _like(rank, mine, parts, name, p, most):
    """Return in a word what a wrong gradient is instead."""
    if mine is None or not mine.any():
        return "empty"
    for like in LIKE:
        if _close(mine, _weighed(parts, like, name, p), most):
            return like
    own = _weighed(parts, "right", name, p, rank)
    factor = float((mine * own).sum() / (own * own).sum().clamp(min=1e-30))
    return "own" if _close(mine, factor * own, most) else "gradient"


def _wrong_layout(parameters, limit, right, yours):
    """Raise with a table of buckets, the first that differs marked."""
    size_of = {name: p.nbytes for name, p in parameters}
    pairs = list(zip_longest(right, yours, fillvalue=[]))
    words = [
        [" ".join(f"{n}:{size_of.get(n, 0)}" for n in b) or "-" for b in pair]
        for pair in pairs
    ]
    wide = max(8, *(len(one) for one, _ in words))
    lines = ["first_bytes={}, bucket_bytes={}; name:bytes".format(*limit)]
    lines += [f"{'bucket':>8}  {'expected':{wide}}  yours"]
    first = next(k for k, (one, other) in enumerate(pairs) if one != other)
    for k, (one, other) in enumerate(words):
        mark = "  ← first difference" * (k == first)
        lines.append(f"{k:>8}  {one:{wide}}  {other}{mark}")
    held, names = [n for b in yours for n in b], [n for b in right for n in b]
    kind = (
        "limits"
        if held == names
        else "registration"
        if held == names[::-1]
        else "names"
    )
    dtypes = [
        {str(dict(parameters)[n].dtype) for n in b if n in size_of} for b in yours
    ]
    raise Wrong(
        "\n".join(lines), kind="dtypes" if any(len(d) > 1 for d in dtypes) else kind
    )


# ---- the order of a rank -------------------------------------------------------------


def _missteps(trace, n, buckets, counts, kind, story=""):
    """Raise for the first thing that a rank did wrong, read from its marks."""
    ranks, seen = [], Played(trace, "Your run")
    for rank in range(n):
        ranks.append([])
        for mark in trace.of(rank, "mark"):
            if mark.label == "step":
                ranks[-1].append([])
            elif ranks[-1] and mark.label.split()[0] in MARKS:
                ranks[-1][-1].append(mark.label.split())
    for number, of_ranks in enumerate(counts):
        steps = [own[number] if number < len(own) else [] for own in ranks]
        for rank, step in enumerate(steps):
            found = _misstep(step, buckets, len(of_ranks[rank]), kind == "overlapped")
            if found:
                what, at, told = found
                lines = [
                    f"Rank {rank}, step {number + 1}: {told}",
                    _around(step, at),
                    story,
                ]
                raise Wrong("\n".join(lines).rstrip(), picture=seen, kind=what)
        orders = [[s[1] for s in step if s[0] in CALLS] for step in steps]
        if story and any(len({*each} - {None}) > 1 for each in zip_longest(*orders)):
            lines = [
                f"  rank {r}: {', '.join(order)}" for r, order in enumerate(orders)
            ]
            lines = [story, f"Sent in step {number + 1}, by bucket:", *lines]
            raise Wrong("\n".join(lines), picture=seen, kind="order")


def _misstep(step, buckets, microbatches, overlaps):
    """Return the kind, the place and a sentence of the first misstep, or None."""
    calls = [at for at, seen in enumerate(step) if seen[0] in CALLS]
    arrived = [at for at, seen in enumerate(step) if seen[0] == "gradient"]
    ended, sent = step[-1:] == [["end"]], []
    for at in calls:
        begun = [int(seen[1]) for seen in step[:at] if seen[0] == "microbatch"]
        if begun and begun[-1] < microbatches - 1:
            return "accumulating", at, f"an all-reduce in microbatch {begun[-1] + 1}."
        if step[at][1] in ("?", "one"):
            return (
                step[at][1],
                at,
                f"an all-reduce of {step[at][2]} elements is of no bucket.",
            )
        bucket = buckets[int(step[at][1])]
        early = [
            step[later][1]
            for later in arrived
            if later > at and step[later][1] in bucket
        ]
        if overlaps and (early or step[at][0] == "side"):
            told = f"bucket {step[at][1]} was sent without the whole gradient of "
            return "early", at, told + (early or ["its parameters"])[0] + "."
        if step[at][1] in sent:
            return "repeated", at, f"bucket {step[at][1]} was sent more than once."
        sent.append(step[at][1])
        if overlaps and f"{len(sent) - 1}" != sent[-1]:
            return (
                "order",
                at,
                f"bucket {sent[-1]} was sent before bucket {len(sent) - 1}.",
            )
    if ended and len(sent) < len(buckets):
        missing = next(k for k in range(len(buckets)) if f"{k}" not in sent)
        return "missing", len(step) - 1, f"bucket {missing} was never sent."
    return (
        _too_late(step, buckets, microbatches, calls, arrived)
        if overlaps and ended
        else None
    )


def _too_late(step, buckets, microbatches, calls, arrived):
    """Return a bucket that was full and not started, or a wait at the wrong moment."""
    times = [step[at][1] for at in arrived]
    ready, complete = -1, True
    for number, bucket in enumerate(buckets):
        complete = complete and min(map(times.count, bucket)) >= microbatches > 0
        if complete:
            ready = max([ready, *(at for at in arrived if step[at][1] in bucket)])
            if any(ready < at < calls[number] for at in arrived):
                late = "after" if calls[0] > arrived[-1] else "late"
                told = (
                    f"bucket {number} was full after the gradient of {step[ready][1]}"
                )
                return late, calls[number], f"{told}, and was started later."
    for at, seen in enumerate(step):
        stands = seen[0] in ("wait", "call")
        if stands and arrived and at < arrived[-1]:
            return "stands", at, f"backward stood still for bucket {seen[1]}."
        if stands and at < calls[-1]:
            return (
                "between",
                at,
                f"it waited for bucket {seen[1]} before the last start.",
            )
        if seen[0] == "left":
            return "left", at, f"{seen[1]} still has a hook of yours after the step."
    waited = {seen[1] for seen in step if seen[0] in ("wait", "call")}
    for at in calls:
        if step[at][1] not in waited:
            return "unwaited", at, f"nothing waited for bucket {step[at][1]}."
    return None


def _around(step, at):
    """Return what a rank did around a moment, the moment itself in brackets."""
    words = [" ".join(seen[:2]).removeprefix("gradient ") for seen in step]
    words[at] = f"[{words[at]}]"
    first = max(0, at - 7)
    before, after = "… " * (first > 0), " …" * (at + 7 < len(step))
    return f"Its order: {before}{' · '.join(words[first : at + 7])}{after}"


def _is(*kinds):
    return lambda facts: facts["kind"] in kinds


# fmt: off
HINTS = [
    Hint(_is("registration"), [
        "This is the order of registration. Which gradients does backward finish "
        "first, those of the first layer or those of the last?"]),
    Hint(_is("lists", "names", "dtypes", "limits"), [
        "Each trained parameter is in one bucket, the last ones first. It joins the "
        "bucket opened last if that has its dtype and still room for all its bytes.",
        "Only the first bucket has room for first_bytes. A bucket may be filled up "
        "to its limit, and a frozen parameter is in none. Leave the list as it is."]),
    Hint(_is("accumulating"), [
        "Until the last microbatch gradients only add up on their own rank. What is "
        "sent before is sent again with more in it.",
        "With three microbatches p.grad is g1, then g1+g2, then g1+g2+g3. Which of "
        "these three do the others need?"]),
    Hint(_is("one"), [
        "One all-reduce for each parameter pays its latency each time. Pack a "
        "bucket's gradients into one buffer and reduce that.",
        "A bucket has several parameters: what do you loop over, buckets or what is "
        "in them?"]),
    Hint(_is("?"), [
        "A buffer holds the gradients of the parameters of one bucket, in their "
        "dtype, and zeros for a parameter that has no gradient.",
        "If a rank leaves out one parameter, what stands behind it in the buffer "
        "meets other parameters' gradients on the other ranks. What can stand in?"]),
    Hint(_is("early"), [
        "A bucket is full when each of its parameters has had its gradient from "
        "every microbatch of the step. What do you count in the hook?",
        "A bucket with 2 parameters in a step with 3 microbatches: how many calls of "
        "the hook concern it before it is full? Start all_reduce itself then."]),
    Hint(_is("order"), [
        "Hooks fire in another order on other ranks, and all-reduces meet in the "
        "order of starting. A bucket that is full has to wait for those before it.",
        "All ranks have one order in common, that of the list. What has to be "
        "remembered of bucket 1 until bucket 0 has gone?"]),
    Hint(_is("repeated", "missing", "bytes"), [
        "Every bucket travels once in every step on every rank, and nothing else "
        "does: as zeros, where no sample has used its parameters or there was none.",
        "Which condition of your code keeps a bucket back, or sends it again? What "
        "do the other ranks do at this moment?"]),
    Hint(_is("after"), [
        "A hook that you register on a parameter is called when its gradient is "
        "there. What could be started there, while backward goes on?",
        "Print in a hook which parameter it was called for. In which order do the "
        "names come, and at which of them is your first bucket complete?"]),
    Hint(_is("late"), [
        "In each hook start as many buckets as are full: a gradient that fills one "
        "may find the next one full already."]),
    Hint(_is("stands", "between", "unwaited", "left"), [
        "Inside of a hook nothing may wait: comm.start(all_reduce, buffer) returns "
        "at once. After the last start, wait for all, and remove your hooks.",
        "The order above shows the wait, or what has none. all_reduce itself returns "
        "when it has ended, and the sum is in a buffer once its wait() returned."]),
    Hint(_is("sum", "samples"), [
        "This is the sum of all ranks' gradients, where the mean over all samples "
        "should be. Which step is left between the all-reduce and p.grad?",
        "Divide the found number by the expected one: is it the number of ranks, or "
        "one of samples?"]),
    Hint(_is("twice", "microbatches", "ranks"), [
        "Each loss is a mean over its samples, and each of all `total` samples "
        "counts the same. How much does a microbatch of 1 weigh beside one of 4?",
        "Write down what the weight of one sample becomes, from the loss to the "
        "average over ranks. What divides by n, and what by a number of samples?"]),
    Hint(_is("own", "empty", "gradient"), [
        "The all-reduce changes the buffer, and p.grad is another tensor until you "
        "copy the result back. Is the buffer filled before, and read after wait()?",
        "Follow one number: from p.grad into the buffer, through the all-reduce, and "
        "back into the same parameter's p.grad, also where that was None."]),
    Hint(lambda f: "NoneType" in str(f["failure"].cause), [
        "all_reduce works in place and returns None; and a parameter that no sample "
        "of this rank has used has p.grad None, which counts as zero.",
        "The message names the line that used None. Which of the two is it?"]),
    Hint(lambda f: any(words in str(f["failure"].cause) for words in
                       ("non-empty", "has no attribute 'backward'")), [
        "This rank has no microbatch, or nothing of a bucket. The others wait for as "
        "many numbers as always: zeros, for each parameter that has no gradient."]),
]
