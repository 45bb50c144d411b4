"""Exercise 13: an MLP and attention split over ranks, compared with the unsplit ones.

All ranks get the same module, and each keeps its shard. Outputs and gradients are
compared in float64 with those of torch's module in one process.
"""

from collections import OrderedDict
from functools import partial
from secrets import randbelow

import torch
from torch import nn
from torch.func import functional_call
from torch.nn.functional import scaled_dot_product_attention

from distlab.checks import kit
from distlab.checks.kit import Hint, Wrong, called, check
from distlab.collectives.chunks import chunk_edges

WITHOUT = kit.modules_of("distlab.train")
CONTRACT = kit.Contract(
    activation={
        "gelu": "the MLP's activation is GELU",
        "relu": "the MLP's activation is ReLU",
        "silu": "the MLP's activation is SiLU",
    },
    remainder={
        "first": "if n does not divide a count, the first shares are one longer",
        "last": "if n does not divide a count, the last shares are one longer",
    },
    order={
        "rising": "shares are given out in the order of the ranks",
        "falling": "shares are given out from the last rank to rank 0",
    },
)
ACTIVATIONS = {"gelu": nn.GELU, "relu": nn.ReLU, "silu": nn.SiLU}
NUMBER = 8  # bytes, float64
_BY_COLUMNS = "down.weight", "out_proj.weight", "out.weight"
_near = partial(torch.isclose, rtol=1e-10, atol=1e-10)


@check("{} ranks, {} tokens, width {}, hidden width {}")
def split_mlp(functions, n, tokens, width, hidden, contract=kit.PUBLISHED):
    """Check that output and gradients are the unsplit MLP's, by one all-reduce each."""
    _check(functions, n, tokens, [("MLP", width, hidden)], contract)


@check("{} ranks, {} tokens, hidden width {}, {} heads of size {}")
def uneven(functions, n, tokens, hidden, heads, size, contract=kit.PUBLISHED):
    """Check the same if n does not divide the columns, and for heads of attention."""
    width = heads * size
    jobs = [("MLP", width, hidden), ("attention", width, heads)]
    _check(functions, n, tokens, jobs, contract)


@check("{} ranks, {} tokens, {} heads of size {}, {} key-value heads")
def grouped_queries(
    functions, n, tokens, heads, size, kv_heads, contract=kit.PUBLISHED
):
    """Check attention whose fewer key-value heads are replicated, and their sums."""
    _check(
        functions, n, tokens, [("grouped", heads * size, (heads, kv_heads))], contract
    )


class GroupedAttention(nn.Module):
    """Self-attention in which several query heads share one head of keys and values.

    q, k, v, out: nn.Linear without bias; rows of the first three are by head.
    """

    def __init__(self, width: int, heads: int, kv_heads: int):
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = heads, kv_heads, width // heads
        kv_width = kv_heads * self.head_dim
        self.q = nn.Linear(width, width, bias=False)
        self.k, self.v = (nn.Linear(width, kv_width, bias=False) for _ in range(2))
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the output; x: a row per token, without a mask."""
        q, k, v = (
            linear(x).unflatten(1, (-1, self.head_dim)).transpose(0, 1)
            for linear in (self.q, self.k, self.v)
        )
        seen = scaled_dot_product_attention(q, k, v, enable_gqa=True)
        return self.out(seen.transpose(0, 1).flatten(1))


def made(
    kind: str, width: int, count, tokens: int, seed: int, activation: str = "gelu"
) -> tuple:
    """Return a module, x, and the output's gradient.

    count: hidden columns of an "MLP", heads of "attention", of "grouped" both kinds.
    """
    if kind == "MLP":
        up, down = nn.Linear(width, count), nn.Linear(count, width)
        middle = {activation: ACTIVATIONS[activation]()}
        module = nn.Sequential(OrderedDict(up=up, **middle, down=down))
    elif kind == "attention":
        module = nn.MultiheadAttention(width, count)
    else:
        module = GroupedAttention(width, *count)
    generator = torch.Generator().manual_seed(seed)
    draw = partial(torch.randn, generator=generator, dtype=torch.float64)
    for p in module.double().parameters():
        p.data = draw(p.shape) / width**0.5
    return module, draw(tokens, width), draw(width, tokens).T


def _parts(kind, count, tensors, n, rank, contract=kit.PUBLISHED):
    """Return a rank's shard of a module's four parameters, or of their gradients."""
    place = n - 1 - rank if contract.get("order") == "falling" else rank
    if kind == "grouped":
        return _grouped_parts(*count, tensors, n, place)
    edges = chunk_edges(count, n)
    if count % n and contract.get("remainder") == "last":
        edges = [count - edge for edge in reversed(edges)]
    start, end = edges[place : place + 2]
    *first, last, bias = tensors
    blocks = 3 if kind == "attention" else 1  # q, k and v, one below the other
    first = [t.unflatten(0, (blocks, count, -1))[:, start:end] for t in first]
    last = last.unflatten(1, (count, -1))[:, start:end].flatten(1)
    return [*(t.flatten(0, 2) for t in first), last, bias]


def _grouped_parts(heads, kv_heads, tensors, n, rank):
    """Return own heads of queries, the key-value heads that they use, and columns."""
    q, k, v, out = tensors
    size, group = len(q) // heads, heads // kv_heads
    start, end = rank * heads // n, (rank + 1) * heads // n
    own = slice(start * size, end * size)
    used = slice(start // group * size, ((end - 1) // group + 1) * size)
    return [q[own], k[used], v[used], out[:, own]]


def _results(function, tensors, x, slope, *more):
    """Return the output of `function(tensors, x, *more)` and gradients, by name."""
    x, *own = [t.detach().clone().requires_grad_() for t in (x, *tensors.values())]
    y = function(dict(zip(tensors, own, strict=True)), x, *more)
    y.backward(slope)
    names = "output", *(f"gradient of {name}" for name in ("x", *tensors))
    held = y, *(t.grad if t.numel() else t for t in (x, *own))  # or None
    return dict(zip(names, held, strict=True))


def _unsplit(kind, module, own, x):
    y = functional_call(module, own, (x, x, x) if kind == "attention" else (x,))
    return y[0] if kind == "attention" else y


def _probe(comm, functions, tokens, jobs, contract, seed):
    found, n, rank = [], comm.world_size, comm.rank
    pairs = zip(jobs, functions[::2], functions[1::2], strict=True)
    for (kind, width, count), split, parallel in pairs:
        how = tokens, seed, contract.get("activation", "gelu")
        module, x, slope = made(kind, width, count, *how)
        shard = called(split, comm, module)
        names, whole = zip(*module.named_parameters(), strict=True)
        parts = _parts(kind, count, whole, n, rank, contract)
        for name, own in zip(names, parts, strict=True):
            if shard[name].shape != own.shape or not _near(shard[name], own).all():
                apart = f"shape {[*shard[name].shape]}, the rank's own {[*own.shape]}"
                if shard[name].shape == own.shape:
                    apart = f"{'columns' if name in _BY_COLUMNS else 'rows'} differ"
                raise ValueError(f"shard[{name!r}] is not its own: {apart}")
        more = [width // count] if kind == "attention" else []
        if kind == "grouped":
            more = [width // count[0], count[1]]
        shard, function = {k: shard[k] for k in names}, partial(called, parallel, comm)
        comm.mark(f"{kind} begins")
        held = _results(function, shard, x, slope, *more)
        comm.mark(f"{kind} ends")
        found.append([t if t is None else t.tolist() for t in held.values()])
    return found


def _check(functions, n, tokens, jobs, contract):
    """Run on ranks and in one process; raise if numbers or bytes differ."""
    seed = randbelow(2**60)
    read = ["order", "remainder"] + ["activation"] * (jobs[0][0] == "MLP")
    contract = {name: contract[name] for name in read if contract.get(name)}
    how = {"args": (tokens, jobs, contract), "without": WITHOUT}
    report = kit.on_ranks(_probe, functions, [seed] * n, **how)
    for turn, (kind, width, count) in enumerate(jobs):
        activation = contract.get("activation", "gelu")
        module, x, slope = made(kind, width, count, tokens, seed, activation)
        whole = dict(module.named_parameters())
        right = _results(partial(_unsplit, kind, module), whole, x, slope)
        y, of_x, *rest = right.values()
        wanted = [[t] * n for t in (y, of_x)]
        parts = [_parts(kind, count, rest, n, r, contract) for r in range(n)]
        wanted += zip(*parts, strict=True)
        yours = zip(*(result[turn] for result in report.results), strict=True)
        for name, w, y in zip(right, wanted, yours, strict=True):
            _compare(f"{kind}, {name}", w, y)
        most = 2 * 2 * (n - 1) * -(-tokens * width // n)
        copies = n // count[1] if kind == "grouped" else 1
        if copies > 1:  # of a key-value head: two gradients are summed over them
            most += 2 * 2 * (copies - 1) * -(-(width // count[0]) * width // copies)
        _check_bytes(report.trace, kind, n, NUMBER * most)


def _compare(name, wanted, yours):
    """Raise if a rank's tensor is not the expected one, with facts for the hints."""
    n = len(yours)
    if None in yours:
        lacks = {"missing": name, "some": any(yours)}
        raise Wrong(f"{name}: None on rank {yours.index(None)}.", **lacks)
    held = [torch.tensor(y, dtype=torch.float64) for y in yours]
    pairs = [(w, y.view_as(w)) for w, y in zip(wanted, held, strict=True)]
    whole = n > 1 and len({t.shape for t in (*held, *wanted)}) == 1  # no uneven shards
    rows = [(w, torch.where(_near(y, w), w, y)) for w, y in pairs]
    wrong = kit.difference([[t.flatten().tolist() for t in row] for row in rows])
    if not wrong:
        return

    def like(some, other):  # up to a vector added to every token's output
        apart = some - other
        return _near(apart, apart[:1] if name.endswith("output") else 0 * apart).all()

    facts = wrong[1] | {"what": name, "copies": name.endswith(("k.weight", "v.weight"))}
    facts["same"] = whole and all(_near(y, held[0]).all() for y in held)
    facts["alone"] = whole and like(sum(held), wanted[0])
    facts["times"] = n > 1 and all(_near(y, n * w).all() for w, y in pairs)
    facts["bias"] = all(like(y, w) for w, y in pairs)
    raise Wrong(f"{name}:\n{wrong[0]}", **facts)


def _check_bytes(trace, kind, n, most):
    """Raise if a rank sends more than one all-reduce each way, or none does."""
    begun, ended = trace.since(f"{kind} begins"), trace.since(f"{kind} ends")
    sent = [begun.bytes_sent(rank) - ended.bytes_sent(rank) for rank in range(n)]
    if max(sent) > most:
        lines = [f"{kind}: forward and backward together; {most:,} bytes are enough"]
        lines += [f"rank {rank}: {count:,} bytes" for rank, count in enumerate(sent)]
        raise Wrong("\n".join(lines), sent=sent)
    if n > 1 and not any(sent):
        raise Wrong(f"{kind}: no message was sent.", silent=True)


def _said(*words):
    return lambda facts: any(each in str(facts["failure"].cause) for each in words)


# fmt: off
HINTS = [
    Hint(_said("shard['in_proj_weight'] is not its own: rows",
               "shard['in_proj_bias'] is not its own: rows"), [
        "in_proj has the rows of q of all heads, then of k, then of v. A rank needs "
        "those of its own heads from each of the three.",
        "3 heads of size 2: which rows are q, k and v of head 2?",
        "unflatten(0, (3, heads, d)) gives q, k, v and the heads dims of their own."]),
    Hint(_said("shard['k.weight']", "shard['v.weight']"), [
        "heads // kv_heads query heads in a row share a key-value head. Which ones do "
        "this rank's query heads need? Ranks next to each other may need the same.",
        "4 query heads, 2 key-value heads, 4 ranks: ranks 0 and 1 have head 0."]),
    Hint(_said("shard["), [
        "A rank has rows of the first weight and bias, and columns of the last weight: "
        "its share, of which the first count % n ranks have one more.",
        "Is it split at all, along which dim, and from which row or column on?",
        "Rank r begins behind r shares of count // n, and min(r, count % n) more."]),
    Hint(lambda f: f["some"] and f["missing"].endswith(("down.bias", "proj.bias")), [
        "This rank's output doesn't use the bias; add it after g on every rank.",
        "All ranks hold the bias, and all need its gradient. Which rank adds it?"]),
    Hint(lambda f: f.get("missing") or _said("does not require grad")(f), [
        "The graph ends at a sum that autograd does not see, so backward stops there.",
        "Which calls between x and the output are neither torch's own nor an apply?",
        "summed belongs into forward or backward of a Function; call that by apply."]),
    Hint(lambda f: f["alone"] and "output" in f["what"], [
        "Which operator sums in forward, and does its forward return the sum?",
        "Each rank returns its own partial output: over all ranks, yours add up to "
        "what is expected (but for the bias). Where is the sum over ranks?",
        "summed returns a new tensor, and leaves the one that it is given."]),
    Hint(lambda f: f["bias"] and "output" in f["what"], [
        "Subtract expected from yours for two ranks and for four. What grows with n?",
        "The same vector is too much in every token: a bias that is added n times.",
        "Partial outputs are summed over ranks. What must not be in them?"]),
    Hint(lambda f: f["alone"] and "gradient of x" in f["what"], [
        "x goes to the columns of all ranks. Where do their gradients come together?",
        "This is the gradient through each rank's own columns: over all ranks, yours "
        "add up to what is expected. The layer before needs the sum, on every rank.",
        "f is the identity in forward. What is its backward, and is it applied to x?"]),
    Hint(lambda f: f["copies"], [
        "A key-value head's gradient is the sum over the ranks that have a copy of it: "
        "each has the term of its own query heads. Others have another head.",
        "Which ranks have this rank's key-value head? Compare their gradients.",
        "A replicated parameter that meets other queries on each rank is like x in "
        "front of split columns: which operator sums its gradient, over which ranks?",
        "comm.split(color) returns a Comm of the ranks that gave the same color."]),
    Hint(lambda f: f["times"], [
        "Every number is n times what it should be: gradients that are whole already "
        "were summed over ranks.",
        "The output's gradient is the same on all ranks. What is in the backward of g?",
        "Partial outputs y1 + y2 = y: what is the derivative of y by y1?"]),
    Hint(lambda f: f["what"] == "attention, output" and f["same"], [
        "The output is the same on all ranks, so communication is not suspect. Which "
        "dims are heads, tokens and head size after each reshape?",
        "A view keeps the order of the numbers, and only transpose or permute swaps "
        "dims. Where do tokens and heads have to swap, and where to swap back?"]),
    Hint(lambda f: f["what"], [
        "What stands before it in this order is right: output, gradient of x, weights.",
        "Run it on one rank. If it is right there, look at what crosses ranks."]),
    Hint(lambda f: f["sent"], [
        "One all-reduce each way is enough, and one over the copies for each gradient "
        "of a replicated head. Whole tensors of other ranks, or a sum over ranks that "
        "have no copy, cost more.",
        "Which collectives do your forward and backward call, and what does each cost?",
        "All-gather of n tensors of S: $(n-1) · S$. All-reduce: $2(n-1)/n · S$."]),
]
