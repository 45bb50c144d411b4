"""Exercise 10: a reduce-scatter, a ring and a hierarchical all-reduce."""

import random
from functools import partial
from itertools import pairwise

import numpy as np

from distlab.checks.kit import (
    Hint,
    Played,
    Wrong,
    called,
    check,
    contributions,
    difference,
    draws,
    followed,
    modules_of,
    on_ranks,
)
from distlab.collectives.chunks import chunk_lengths, split
from distlab.links import LINKS
from distlab.simulated import Nodes
from distlab.units import readable_seconds

WITHOUT = modules_of("distlab.collectives", but=("arguments", "chunks", "reductions"))
FLOAT32, SLACK = 4, 1.05
INSIDE, OUTSIDE = LINKS["NVLink 4"], LINKS["InfiniBand NDR"]


@check("{} ranks, {} elements")
def reduce_scatter(function, n, length):
    """Each rank of a ring ends with one complete chunk, and returns its index."""
    ring, lengths = random.sample(range(n), n), chunk_lengths(length, n)
    spans = [slice(sum(lengths[:i]), sum(lengths[: i + 1])) for i in range(n)]
    for draw in (contributions, draws):  # the first explains, the second decides
        inputs = draw(n, length)
        total = [sum(column) for column in zip(*inputs, strict=True)]
        report, picture = _run(partial(_on_chunks, function, ring), inputs)
        held, owners = zip(*report.results, strict=True)
        if sorted(owners, key=str) != sorted(range(n), key=str):
            found = f"The ranks returned, rank by rank: {', '.join(map(str, owners))}."
            raise Wrong(found, picture=picture(), owners=owners)
        rows = [
            (total[spans[o]], h[spans[o]]) for h, o in zip(held, owners, strict=True)
        ]
        if wrong := difference(rows, told=draw is contributions):
            others = [h[s] == total[s] for h in held for s in spans]
            facts = {"kept": list(held) == inputs, "owners": any(others) or None}
            raise Wrong(wrong[0], picture=picture(), **facts, **wrong[1], length=length)
        sent = sum(map(report.trace.bytes_sent, range(n)))
        if sent != (n - 1) * length * FLOAT32:
            found = f"The chunks are right, but all ranks together sent {sent} bytes, "
            found += f"where {(n - 1) * length * FLOAT32} are enough."
            raise Wrong(found, picture=picture(), sent=[sent])
    _along_the_ring(report.trace, ring, picture)


@check("{} ranks, {} elements")
def all_reduce(function, n, length):
    """Every rank of a ring ends with the sum, in place, in 2(n-1) rounds of chunks."""
    ring = random.sample(range(n), n)
    for draw in (contributions, draws):
        inputs = draw(n, length)
        total = [sum(column) for column in zip(*inputs, strict=True)]
        report, picture = _run(partial(_on_tensor, function, ring), inputs)
        held = [tensor for tensor, _ in report.results]
        if wrong := difference([(total, h) for h in held], told=draw is contributions):
            some = any(value in total for h in held for value in h)
            facts = {"kept": held == inputs, "some": some, "length": length}
            raise Wrong(
                wrong[0], picture=picture(), two_phases=True, **facts, **wrong[1]
            )
    sent = [report.trace.bytes_sent(rank) for rank in range(n)]
    size, longest = length * FLOAT32, max(chunk_lengths(length, n)) * FLOAT32
    if sum(sent) != 2 * (n - 1) * size or max(sent) > 2 * (n - 1) * longest:
        lines = [f"rank {rank}: sent {sent[rank]} bytes" for rank in range(n)]
        lines.append(f"A ring sends {2 * (n - 1) * size // n} bytes per rank.")
        raise Wrong("\n".join(lines), picture=picture(), sent=sent, size=size)
    if report.trace.rounds() > 2 * (n - 1):
        found = f"It took {report.trace.rounds()} rounds; {2 * (n - 1)} are enough."
        raise Wrong(found, picture=picture(), rounds=report.trace.rounds())
    _along_the_ring(report.trace, ring, picture)


@check("{} nodes of {} ranks, {} elements")
def hierarchical(function, nodes, per_node, length):
    """The same sum on a cluster, within the time of rings inside and between nodes."""
    n, fabric = nodes * per_node, Nodes(per_node, INSIDE, OUTSIDE, cards=per_node)
    seeds = [random.getrandbits(32) for _ in range(n)]
    how = {"args": (length, per_node), "fabric": fabric, "without": WITHOUT}
    report = on_ranks(_seeded_probe, function, seeds, **how)
    total = sum(_seeded(seed, length) for seed in seeds).tolist()
    held = [np.frombuffer(data, np.float32).tolist() for data in report.results]
    picture = Played(report.trace, "Your run on the cluster")
    if wrong := difference([(total, mine) for mine in held]):
        raise Wrong(wrong[0], picture=picture, cluster=True, **wrong[1])
    target_s = SLACK * hierarchical_s(nodes, per_node, length)
    if report.elapsed_s > target_s:
        took, target = map(readable_seconds, (report.elapsed_s, target_s))
        out = [_bytes_out(report.trace, rank, per_node) for rank in range(n)]
        found = f"The sums are right. It took {took}; the target is {target}.\n"
        found += f"Bytes that left their node, by rank: {', '.join(map(str, out))}"
        raise Wrong(found, picture=picture, out=out)


def hierarchical_s(nodes: int, per_node: int, length: int) -> float:
    """Return the seconds of rings inside nodes and, for each chunk, between them."""
    chunk = -(-length // per_node)
    inside = INSIDE.seconds(chunk * FLOAT32)
    between = OUTSIDE.seconds(-(-chunk // nodes) * FLOAT32)
    return 2 * (per_node - 1) * inside + 2 * (nodes - 1) * between


def _run(function, inputs):
    """Return the report, and what draws the run on a tensor that shows contributions."""
    n, length = len(inputs), len(inputs[0])
    picture = partial(followed, function, n, length, without=WITHOUT)
    report = on_ranks(_probe, function, inputs, without=WITHOUT, own=picture)
    if any(len(tensor) != length for tensor, _ in report.results):
        raise Wrong("A rank's tensor ended with another length.", misshapen=True)
    if n > 1 and length and not any(report.trace.messages()):
        raise Wrong("No message was sent through comm.", silent=True)
    return report, picture


def _probe(comm, function, inputs):
    import torch  # here, because only ranks may load it

    tensor = torch.tensor(inputs, dtype=torch.float32)
    returned = function(comm, tensor)
    return tensor.tolist(), returned if type(returned) is int else repr(returned)


def _on_chunks(function, ring, comm, tensor):
    return called(function, comm, split(tensor, comm.world_size), ring)


def _on_tensor(function, ring, comm, tensor):
    return called(function, comm, tensor, ring)


def _seeded_probe(comm, function, length, per_node, seed):
    import torch

    tensor = torch.from_numpy(_seeded(seed, length))
    called(function, comm, tensor, per_node)
    return tensor.numpy().tobytes()


def _seeded(seed, length):
    return np.random.default_rng(seed).integers(-999, 999, length).astype(np.float32)


def _bytes_out(trace, rank, per_node):
    sends = trace.of(rank, "send")
    return sum(e.bytes for e in sends if e.peer // per_node != rank // per_node)


def _along_the_ring(trace, ring, picture):
    """Raise if a message went to a rank that is not next to its sender in the ring."""
    pairs = {*pairwise([*ring, ring[0]])}
    for rank in ring:
        for event in trace.of(rank, "send"):
            if not {(rank, event.peer), (event.peer, rank)} & pairs:
                found = (
                    f"The ring is {ring}, and rank {rank} sent to rank {event.peer}."
                )
                raise Wrong(found, picture=picture(), strangers=True)


# fmt: off
HINTS = [
    Hint(lambda f: f["ready_made"], [
        "Write it from comm.sendrecv: the algorithm itself is the exercise.",
        "The verdict names what was called. Which single step of it could you write with "
        "one call of comm.sendrecv?"]),
    Hint(lambda f: f["owners"], [
        "Return the index of the chunk that is complete on this rank; each rank completes "
        "a different one.",
        "In the player at the end, find on each rank the chunk with all stripes. In which "
        "chunk did that rank add in its last step?"]),
    Hint(lambda f: f["kept"], [
        "Change the tensor itself: chunk += arrived writes in place, and chunk = chunk + "
        "arrived makes a new one.",
        "Every rank ends as it began. Which line computes the sum, and does it write into "
        "the chunk's memory or bind the name to a new tensor?"]),
    Hint(lambda f: max(f["counts"]) > 1, [
        "A contribution is added twice. In the all-gather phase complete chunks replace "
        "what is there; before it, send the chunk that you added to last.",
        "In the player go to the first step with a red frame. In which phase is it, and "
        "what does your code do with what arrives there?"]),
    Hint(lambda f: sum(f["counts"]) == 1 and f["length"] % f["n"], [
        "Here the chunks differ in length. Is every element of the tensor in one of your "
        "chunks?",
        "10 elements for 4 ranks are chunks of 3, 3, 2 and 2. Which lengths do yours "
        "have, and which elements are in none of them?"]),
    Hint(lambda f: f["two_phases"] and (f["some"] or sum(f["counts"]) == 1), [
        "An incomplete chunk was passed on: with which chunk does the all-gather phase "
        "begin? If your reduce-scatter phase does not add what arrives, no chunk is.",
        "In the player stop between the two phases. Which chunk has all stripes on rank "
        "0? Go one step on: is this the chunk that rank 0 sends?"]),
    Hint(lambda f: sum(f["counts"]) == 1, [
        "Each element holds one rank's contribution. What arrives has to be added to what "
        "is there, in the chunk that you send next.",
        "In the player no cell ever gets a second stripe. Where does what arrives go in "
        "your code?"]),
    Hint(lambda f: sum(f["counts"]) < f["n"], [
        "A contribution is missing. How many steps does a chunk need to pass every rank?",
        "The table shows whose it is. With 4 ranks a chunk starts on one rank and has to "
        "visit the other three. Count the steps of your loop."]),
    Hint(lambda f: f["strangers"], [
        "`ring` is the order of the ranks: the right neighbor is the next in the list, "
        "not rank + 1.",
        "Find this rank's place in the list first, and count chunks and neighbors by "
        "places."]),
    Hint(lambda f: min(f["sent"]) == max(f["sent"]) == 2 * (len(f["sent"]) - 1) * f["size"], [
        "Every message is as long as the whole tensor. Which part of it is new?",
        "With 4 ranks and 40 elements a ring sends 10 elements in each message. If you "
        "send 40, what are the other 30?"]),
    Hint(lambda f: f.get("sent") or f["rounds"], [
        "Each chunk makes n-1 hops in each phase, and in every round all ranks send. Does "
        "one rank do more than the others, or one step more than it needs?",
        "Rotate the player's picture of a step by one rank: in a ring it looks the same. "
        "In yours, which rank stands idle, or which step adds nothing?"]),
    Hint(lambda f: f.get("out") or f["cluster"], [
        "Reduce-scatter inside the node first, so that each rank owns one chunk of the "
        "node's sum. Which ranks of the other nodes own the same chunk?",
        "With k ranks per node, each should send only 2(m-1)/m of its chunk, S/k, to "
        "other nodes. Three calls are enough: inside, between, inside."]),
]
