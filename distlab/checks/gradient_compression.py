"""Exercise 16: top-k of gradients, error feedback in a hook, and a budget of bytes.

Gradients are whole numbers up to a million, which float32 adds exactly.
"""

import math
import re
from functools import partial
from random import SystemRandom

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from distlab.checks import kit
from distlab.checks.kit import Hint, Wrong, called, check
from distlab.train.buckets import Bucket
from distlab.train.data import digits

WITHOUT, random = kit.modules_of("distlab.train.compression"), SystemRandom()
PARAMETERS = np.split(np.arange(30), [7, 15, 22])  # elements of 4 parameters
EARLY, LATE = [[3, 2], [1, 0]], [[3], [2, 1, 0]]  # DDP makes its buckets anew
PLAN = ["the first step", "error feedback", "error feedback", "a second hook",
        "zero gradients", "a NaN", "the step after a NaN", "an infinity",
        "the step after an infinity", "other buckets", "other buckets"]  # fmt: skip
ARRIVALS = (50_000, 1e-12), (65_536, 1e-6), (70_000, 1e-3), (10, 1e-3)  # count, scale
BUDGETS = [  # lengths of buckets, steps, ranks; the density that fits, the least one
    ((50_000, 10), 12, 2, 0.4321, 0.42), ((65_536, 70_000, 8), 5, 4, 0.05, 0.049),
    ((65_536, 8), 5, 4, 0.0001, 0.0001), ((10, 20_000), 7, 3, 1.0, 1.0)]  # fmt: skip
STEPS, RATE, LESS, TARGET = 60, 0.5, 50, 2.0


@check("{} ranks, shape {}, density {}, {}")
def averaged(function, n, shape, density, kind):
    """Check the mean over ranks of each one's k largest, for exactly (n-1) 8k bytes."""
    count = math.prod(shape)
    k, inputs = kept(density, count), [_distinct(count) for _ in range(n)]
    if kind == "ties":
        inputs = kit.contributions(n, count)
    if kind == "zeros on rank 0":
        inputs[0] = [0] * count
    how = {"args": (shape, density), "without": WITHOUT}
    report = kit.on_ranks(_averaging, function, inputs, **how)
    _check_bytes(report, (n - 1) * 8 * k, ties=kind == "ties")
    right, yours = _largest(np.array(inputs), k)[0].mean(axis=0), report.results
    if kind == "ties":  # any k of each rank
        right, yours = [right.sum()], [[sum(held)] for held in yours]
    facts = {"average": True, "same": report.results == inputs}
    _compare("", right, yours, near=0.2, **facts)


def _averaging(comm, function, shape, density, own):
    """Average a gradient; a matrix is the transpose of another tensor."""
    gradient = torch.tensor(own, dtype=torch.float32).view(shape)
    if len(shape) == 2:
        gradient = gradient.T.contiguous().T
    called(function, comm, gradient, density)
    return gradient.flatten().tolist()


@check("{} ranks, density {}")
def remembered(function, n, density):
    """Check that a hook sends the rest later, and refuses NaN and infinity."""
    bad, right = random.randrange(n), None
    while right is None:
        drawn = np.array([[_distinct(30) for _ in PLAN] for _ in range(n)], float)
        drawn[:, 4], drawn[bad, 5, 2], drawn[bad, 7, 3] = 0, math.nan, -math.inf
        right = _remembering(density, drawn)
    how = {"args": (density,), "without": WITHOUT}
    report = kit.on_ranks(_hooked, function, drawn.tolist(), **how)
    for (where, about, mean), *yours in zip(right, *report.results, strict=True):
        said = [held for held in yours if isinstance(held, str)]
        if mean is not None and said:
            raise Wrong(f"{where}it raised {said[0]}", about=about)
        if mean is not None:
            _compare(where, mean, yours, about=about)
        elif sum(bool(re.search(rf"(?i)rank\W*{bad}\b", each)) for each in said) < n:
            found = f"{where}expected: a ValueError on each rank that says rank {bad}\n"
            found += (
                f"yours: {said[0] if said else 'none'}, on {len(said)} of {n} ranks"
            )
            raise Wrong(found, refused=said)
    lengths = [len(_elements(group)) for about in PLAN for group in _groups(about)]
    _check_bytes(report, (n - 1) * sum(8 * kept(density, d) for d in lengths))


def _hooked(comm, function, density, own):
    """Give the plan's buckets to hooks; return means, or the errors raised."""
    parameters = [nn.Parameter(torch.zeros(len(each))) for each in PARAMETERS]
    hooks, seen = {}, []
    for about, gradient in zip(PLAN, own, strict=True):
        which = about == "a second hook"
        if which not in hooks:
            hooks[which] = called(function, density)
        for group in _groups(about):
            bucket = Bucket([parameters[p] for p in group])
            bucket.buffer()[:] = torch.tensor(gradient)[_elements(group)]
            try:
                called(hooks[which], comm, bucket)
                seen.append(bucket.buffer().tolist())
            except ValueError as error:
                seen.append(f"{type(error).__name__}: {error}")
            comm.barrier()  # all refuse, or none
    return seen


def _remembering(density, drawn):
    """Return each bucket's mean, None if refused; or None where elements tie."""
    errors, means = np.zeros((2, len(drawn), 30)), []
    for step, about in enumerate(PLAN):
        error = errors[int(about == "a second hook")]
        for group in _groups(about):
            at = _elements(group)
            full = drawn[:, step, at] + error[:, at]
            where = f"Step {step + 1}, {about}, in the bucket of parameters {group}:\n"
            sent, ties = _largest(full, kept(density, len(at)))
            if ties:
                return None
            finite = np.isfinite(full).all()
            if finite:
                error[:, at] = full - sent
            means.append((where, about, sent.mean(axis=0) if finite else None))
    return means


@check("{} ranks, width {}")
def efficient(functions, n, width):
    """Check that short codes lose nothing, and that it learns within a byte budget."""
    counts = [len(_places(count)) for count, _ in ARRIVALS]
    own, density = [[_distinct(k) for k in counts] for _ in range(n)], 8 / 50_000
    how = {"args": (density,), "without": WITHOUT}
    report, most = kit.on_ranks(_arriving, functions[0], own, **how), 0
    for place, (count, scale) in enumerate(ARRIVALS):
        most += kept(density, count) * (4 if count <= 2**16 else 6) + 4
        where = f"Sum of 12 steps of a bucket of {count:,}, in units of {scale:g}:\n"
        right = [*np.mean([drawn[place] for drawn in own], axis=0), 0]
        yours = [result[place] for result in report.results]
        _compare(where, right, yours, near=10, arrived=count)
    _check_bytes(report, (n - 1) * 12 * most, most=True)
    _check_budgets(functions)
    (sent, losses), (dense, best) = learned(functions, n, width).values()
    facts = {"over": sent[-1] / (dense[-1] / LESS), "loss": losses[-1] / best[-1]}
    if facts["over"] > 1 or not facts["loss"] <= TARGET:
        found = f"Bytes: at most {dense[-1] / LESS:,.0f}, yours {sent[-1]:,.0f}.\n"
        found += (
            f"Loss: at most {TARGET:g} times {best[-1]:.3f}, yours {losses[-1]:.3f}."
        )
        raise Wrong(found, **facts)


def _arriving(comm, function, density, own):
    """Return the sums that arrive for some elements of a bucket, and the rest."""
    hook, seen = called(function, density), []
    for (count, scale), drawn in zip(ARRIVALS, own, strict=True):
        at = _places(count)
        bucket, total = Bucket([nn.Parameter(torch.zeros(count))]), torch.zeros(count)
        for step in range(12):
            bucket.buffer().zero_()
            bucket.buffer()[at] = torch.tensor(drawn) * scale * (step == 0)
            called(hook, comm, bucket)
            total = total + bucket.buffer().double() / scale
        there = total[at].clone()
        total[at] = 0
        seen.append([*there.tolist(), total.abs().sum().item()])
    return seen


def _places(count):
    """Return up to 12 indices of a bucket, from its end."""
    return [*range(count - 1, -1, -max(4, count // 60))][:12]


def _check_budgets(functions):
    """Raise if a density sends more than a budget, or less than it could."""
    report = kit.on_ranks(_budgeted, functions, [None] * 2, without=WITHOUT)
    rows, nothing = report.results[0]
    pairs = zip(BUDGETS, rows, strict=True)
    for (lengths, steps, n, *_), (density, budget, least, sent) in pairs:
        if not least <= sent <= budget:
            found = f"density_within({budget:,}, {steps}, {[*lengths]}, {n}) gave "
            found += f"{density:g}.\nA rank sends {sent:,} bytes with it, and may send "
            found += f"{budget:,}; at least {least:,} are possible."
            raise Wrong(found, over=sent / budget, unused=sent < least)
    if nothing is not None:
        found = f"density_within(0, 5, [10], 2) gave {nothing!r}.\n"
        found += "Not one element fits into 0 bytes: None is wanted."
        raise Wrong(found, nothing=True)


def _budgeted(comm, functions, _):
    """Return for each budget the density chosen, and bytes: budget, least, sent.

    Also what is chosen for a budget of 0 bytes.
    """
    counted, rows = [], []
    for name in ("send", "isend", "sendrecv", "isendrecv"):
        setattr(comm, name, partial(_counting, getattr(comm, name), counted))
    for lengths, steps, ranks, fits, least in BUDGETS:
        buckets = [Bucket([nn.Parameter(torch.zeros(d))]) for d in lengths]

        def sent(density, buckets=buckets, times=steps * (ranks - 1)):
            hook, before = called(functions[0], density), len(counted)
            for bucket in buckets:
                bucket.buffer()[:] = torch.arange(1.0, len(bucket.buffer()) + 1)
                called(hook, comm, bucket)
            return times * sum(counted[before:])

        budget, least = sent(fits), sent(least)
        given = budget * (1 + (fits == 1)), steps, [*lengths], ranks
        density = float(called(functions[1], *given))
        rows.append((density, budget, least, sent(min(1.0, density)) + (density > 1)))
    nothing = called(functions[1], 0, 5, [10], 2)
    return rows, nothing if nothing is None else float(nothing)


def _counting(method, counted, tensor, *more, **how):
    """Call a method that sends a tensor; append its bytes to `counted`."""
    counted.append(tensor.nbytes)
    return method(tensor, *more, **how)


def learned(functions, n: int = 3, width: int = 32) -> dict:
    """Train on digits; return bytes of a rank and losses, after each tenth step.

    functions: a hook's class, and the function that chooses its density. Each rank has
    some of the ten digits. "dense" is one process with the batches of all ranks.
    """
    (pixels, labels), seed = digits(), random.randrange(2**60)
    draw = torch.Generator().manual_seed(seed)
    own = [(pixels[p], labels[p], torch.randint(len(p), (STEPS, 32), generator=draw))
           for p in labels.argsort(stable=True).chunk(n)]  # fmt: skip
    model, every = _reader(seed, width), range(10, STEPS + 1, 10)
    dense = 2 * (n - 1) / n * sum(p.nbytes for p in model.parameters())
    how = {"args": (seed, width, int(dense * STEPS / LESS)), "without": WITHOUT}
    report = kit.on_ranks(_training, functions, own, **how)
    curves, sent = report.results, max(map(report.trace.bytes_sent, range(n)))
    if not np.ptp([curve[-1] for curve in curves], axis=0).max() < 1e-3:
        raise Wrong("After training, ranks have different parameters.")
    curves, found = {"yours": curves[0], "dense": _descend(model, own, int)}, {}
    for (name, curve), each in zip(curves.items(), (sent / STEPS, dense), strict=True):
        found[name] = [each * step for step in every], []
        for flat in curve:
            vector_to_parameters(torch.tensor(flat), model.parameters())
            found[name][1].append(cross_entropy(model(pixels), labels).item())
    return found


def _reader(seed, width):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(64, width), nn.Tanh(), nn.Linear(width, 10))


def _training(comm, functions, seed, width, budget, own):
    """Train on this rank's digits with a bucket for each parameter, the last first."""
    model = _reader(seed, width)
    buckets = [Bucket([p]) for p in reversed([*model.parameters()])]
    lengths = [len(bucket.buffer()) for bucket in buckets]
    density = called(functions[1], budget, STEPS, lengths, comm.world_size)
    hook = called(functions[0], density)

    def average():
        for bucket in buckets:
            bucket.take_in()
            called(hook, comm, bucket)
            bucket.hand_out()

    return _descend(model, [own], average)


def _descend(model, shares, average):
    """Train; return all parameters after each tenth step."""
    seen = []
    for step in range(STEPS):
        for x, y, batches in shares:
            at = batches[step]
            (cross_entropy(model(x[at]), y[at]) / len(shares)).backward()
        average()
        for p in model.parameters():
            p.data -= RATE * p.grad
            p.grad = None
        seen.append(parameters_to_vector(model.parameters()).tolist())
    return seen[9::10]


def kept(density: float, count: int) -> int:
    """Return k: the number of elements sent, of `count`."""
    return max(1, round(density * count))


def _distinct(count):
    return [x * random.choice([1, -1]) for x in random.sample(range(1, 10**6), count)]


def _groups(about):
    return LATE if about == "other buckets" else EARLY


def _elements(group):
    return np.concatenate([PARAMETERS[p] for p in group])


def _largest(rows, k):
    """Return the k largest of each row among zeros; and True if others are as large."""
    order, sizes, sent = np.argsort(-np.abs(rows), axis=1), np.abs(rows), rows * 1.0
    np.put_along_axis(sent, order[:, k:], 0, axis=1)
    last, more = (np.take_along_axis(sizes, order[:, i : i + 1], 1) for i in (k - 1, k))
    return sent, bool(((last == more) & (more > 0)).any())


def _compare(where, right, results, near=1, **facts):
    """Raise at the first rank and element that is not near the expected one."""
    right = [float(x) for x in right]
    both = [zip(right, own, strict=False) for own in results]
    snapped = [[x if abs(x - y) <= near else y for x, y in pairs] for pairs in both]
    if wrong := kit.difference([(right, own) for own in snapped]):
        raise Wrong(where + wrong[0], **wrong[1] | facts)


def _check_bytes(report, right, most=False, **facts):
    """Raise if a rank sent another number of bytes; with `most`, if it sent more."""
    for rank in range(len(report.results)):
        sent = report.trace.bytes_sent(rank)
        if sent > right or (sent < right and not most):
            found = (
                f"Bytes of rank {rank}: expected {'at most ' * most}{right:,}, yours"
            )
            raise Wrong(f"{found} {sent:,}.", sent=sent, most=most, **facts)


# fmt: off
HINTS = [
    Hint(lambda f: f["ties"], [
        "Exactly k elements travel. A threshold lets all that equal it pass, or none.",
        "Look for a comparison with a threshold, such as abs() >= smallest. topk "
        "returns exactly k elements, and their indices with them."
        ]),
    Hint(lambda f: f["average"] and f["same"], [
        "The gradient is as it was. flatten() and reshape() copy what does not lie in "
        "one piece, and an assignment to a name changes no tensor.",
        "Look at the last line of average. Does it write into `gradient` itself, in "
        "place, also for a transposed one? Which method of a tensor copies values "
        "into it, and with which shape?"]),
    Hint(lambda f: f["average"], [
        "Compare the first difference: is it the sum where the mean belongs, or were "
        "large negative elements left out?",
        "Gradients [1, -9] and [2, 4], k = 1: what is the mean of what is sent?"]),
    Hint(lambda f: "MessageMismatch" in type(f["failure"].cause).__name__, [
        "Codes of different ranks have different lengths. k follows from the density "
        "and the length alone: zeros are sent, too, where nothing larger is left.",
        "Print k and len(code) on each rank. Is k computed from the number of "
        "elements, or from how many are not zero? Does round() come before max()?"]),
    Hint(lambda f: "barrier" in str(f["failure"]), [
        "One rank refuses, and the others wait. All have to take part in the "
        "all-gather before any refuses; what tells them then that rank 1 has a NaN?",
        "NaN and infinity are the largest elements of all. Look into each code."]),
    Hint(lambda f: "refused" in f, [
        "Which rank's code has the NaN? The position in what ring_all_gather returns "
        "is the rank. Every rank looks at all codes, and raises the same ValueError.",
        "Look at the loop in which you test for NaN: does it go over the gathered "
        "codes, or over this rank's own gradient? enumerate gives the rank of each "
        "code."]),
    Hint(lambda f: f["about"] == "the first step", [
        "A new hook has no error, and the first step is that of step 1. Two buckets "
        "may have one length: what is the key of your error?",
        "Look at the line that reads an error. What does it give for a parameter "
        "that was never seen, and is the key the parameter, or a length or a place "
        "in a list?"]),
    Hint(lambda f: f["about"] == "a second hook", [
        "A new hook begins with what an older one kept. An attribute of the class, or "
        "a name outside of it, belongs to all hooks.",
        "Look for a dict or list in the class body, as a default argument, or at the "
        "top of the cell. Where is __init__ called, and what has to be made there?"]),
    Hint(lambda f: f["about"] == "other buckets", [
        "The parameters are the same and lie in other buckets. An error kept by bucket "
        "is lost here: split it, and keep a piece for each parameter.",
        "Look at how errors are stored. bucket.parameters() are in the order of the "
        "buffer: cut the error by p.numel() of each, store it under p, and put it "
        "together again in the next call."]),
    Hint(lambda f: "after" in f["about"], [
        "The step that was refused has changed an error. Look at all codes before you "
        "keep anything, on the ranks without a NaN, too.",
        "Put the loop that raises before the first line that changes self. Does the "
        "branch that raises come before copy_ and before the new error on every "
        "rank?"]),
    Hint(lambda f: f["about"], [
        "error = gradient + error - what was sent. It is kept from step to step, and "
        "what was sent is in it no longer.",
        "Gradients 4, 2, 1, k = 1: write down what is sent in five steps, by hand."]),
    Hint(lambda f: f["arrived"], [
        "What was sent never arrived, arrived twice or elsewhere. Which whole numbers "
        "fit in 16 bits, and which floats? And what is the error of a rounded element?",
        "The error is gradient + error - decompress(code). An int16 ends at 32,767, a "
        "uint16 at 65,535, and float16 has nothing between 0 and 6e-8."]),
    Hint(lambda f: f["nothing"], [
        "What does your search return when no density passes? A short bucket sends one "
        "element at any density, so some budgets are too small for all of them.",
        "Follow a budget of 0 through your loop, or its last bounds, to the return. "
        "0.0, or the smallest density that you tried, would be trained with: return "
        "None."]),
    Hint(lambda f: f["unused"], [
        "More elements fit into the budget. What is the length of a code, of a bias of "
        "10 elements and of a bucket of 70,000, too? Try large densities first.",
        "Print the bytes of one step for the density that you return, and for one "
        "0.0001 larger: the first fits, and the second should not."]),
    Hint(lambda f: f["most"], [
        "Count the bytes of a code: an index of 2 and an element of 2 for each of the "
        "k. Which dtypes do you join, and does your hook call self.compress?",
        "Print the dtypes that go into to_bytes, and len(code) / k. Which of them "
        "has 4 bytes, and up to which length of the bucket do 2 bytes hold every "
        "index?"]),
    Hint(lambda f: "sent" in f, [
        "Every rank sends one code of 8 bytes for each of k elements, in a ring "
        "all-gather, and nothing else, in each step.",
        "Look at what you pass to ring_all_gather: one tensor of uint8, once per "
        "call. Is anything else sent, such as a flag for NaN or a length? The code "
        "itself can carry that."]),
    Hint(lambda f: f["over"] > 1, [
        "A rank sends its code to $n-1$ others, in every step, and a short bucket "
        "sends one element at any density. Add up the bytes for a density, then "
        "search.",
        "Write the bytes of one step as a sum over `lengths`, with k = max(1, "
        "round(density · length)) and 4 or 6 bytes for each, times $n-1$. Take the "
        "largest density for which steps times that fits."]),
    Hint(lambda f: "over" in f, [
        "It stays within the budget, and learns too little: how much of the budget is "
        "left, and is what was not sent in the next step's gradient?",
        "Compare the bytes sent with the budget in the verdict. Do you search from "
        "the largest density down? Then look at the error of SmallHook: is it the "
        "difference to what decompress returns?"]),
]
