"""Exercise 10: a reduce-scatter, a ring and a hierarchical all-reduce."""

from functools import partial
from itertools import pairwise
from random import SystemRandom

from distlab import collectives
from distlab.checks import kit
from distlab.checks.kit import Hint, Played, Wrong, check
from distlab.collectives.chunks import chunk_edges, split
from distlab.links import LINKS
from distlab.simulated import Nodes
from distlab.units import readable_seconds

_THERE = "arguments", "chunks", "reductions"
WITHOUT = kit.modules_of("distlab.collectives", but=_THERE)
FLOAT32, MOST_CONTRIBUTIONS, SLACK = 4, 8, 1.05
INSIDE, OUTSIDE = LINKS["NVLink 4"], LINKS["InfiniBand NDR"]


@check("{} ranks, {} elements")
def reduce_scatter(function, n, length):
    """Each rank of a ring ends with one complete chunk, and returns its index."""
    ring = SystemRandom().sample(range(n), n)
    spans = [slice(*ends) for ends in pairwise(chunk_edges(length, n))]
    ideals = _ideals(collectives.ring_reduce_scatter, ring, length)
    for run in _runs(partial(_called, function, ring, True), n, length, ideals):
        owners, total = run.returned, run.total
        if {*owners} != {*range(n)}:
            raise run.wrong(f"The ranks returned {owners}, in order.", owners=owners)
        mine = [spans[owner] for owner in owners]
        rows = [(total[s], held[s]) for s, held in zip(mine, run.held, strict=True)]
        elsewhere = any(held[s] == total[s] for held in run.held for s in spans)
        run.compare(rows, owners=elsewhere or None)
        run.check_traffic(n - 1)


@check("{} ranks, {} elements")
def all_reduce(function, n, length):
    """Every rank of a ring ends with the sum, in place, in 2(n-1) rounds of chunks."""
    ring, hops = SystemRandom().sample(range(n), n), 2 * (n - 1)
    ideals = _ideals(collectives.ring_all_reduce, ring, length)
    for run in _runs(partial(_called, function, ring, False), n, length, ideals):
        some = any(value in run.total for held in run.held for value in held)
        run.compare([(run.total, held) for held in run.held], some=some)
        run.check_traffic(hops)
        if (rounds := run.trace.rounds()) > hops:
            found = f"It took {rounds} rounds; {hops} are enough."
            raise run.wrong(found, rounds=rounds)


@check("{} nodes of {} ranks, {} elements")
def hierarchical(function, nodes, per_node, length):
    """The same sum on a cluster, within the time of rings inside and between nodes."""
    n, fabric = nodes * per_node, Nodes(per_node, INSIDE, OUTSIDE, cards=per_node)
    call = partial(_called, function, per_node, False)
    for run in _runs(call, n, length, fabric=fabric):
        run.compare([(run.total, held) for held in run.held], cluster=True)
    chunk = -(-length // per_node)
    target_s = 2 * SLACK * (per_node - 1) * INSIDE.seconds(FLOAT32 * chunk)
    target_s += 2 * SLACK * (nodes - 1) * OUTSIDE.seconds(FLOAT32 * -(-chunk // nodes))
    if run.elapsed_s > target_s:
        took, target = map(readable_seconds, (run.elapsed_s, target_s))
        out = bytes_out(run.trace, per_node)
        found = f"The sums are right. It took {took}; the target is {target}.\n"
        found += f"Bytes that left their node, by rank: {', '.join(map(str, out))}"
        raise Wrong(found, picture=Played(run.trace, "On the cluster"), out=out)


def bytes_out(trace, per_node: int) -> list[int]:
    """Return the bytes that each rank sent to ranks of other nodes."""
    out = [0] * trace.world_size
    for event in trace.events:
        if event.kind == "send" and event.peer // per_node != event.rank // per_node:
            out[event.rank] += event.bytes
    return out


def _ideals(algorithm, ring, length):
    """Return the library's runs that are as good: from any chunk, either way around."""
    seatings = kit.ring_seats(len(ring))
    placed = ([seats[ring.index(r)] for r in sorted(ring)] for seats in seatings)
    return kit.librarys(algorithm, placed, numbers=length)


def _runs(call, n, length, ideals=(), fabric=None):
    """Run it twice: the first run explains, the second decides."""
    if n <= MOST_CONTRIBUTIONS:
        yield _Run(call, kit.contributions(n, length), ideals, fabric, told=True)
    yield _Run(call, kit.draws(n, length), ideals, fabric)


class _Run:
    """A run on ranks, and the verdicts on it; `call` is a partial of `_called`."""

    def __init__(self, call, inputs, ideals, fabric, *, told=False):
        self.inputs, self._told, n, length = inputs, told, len(inputs), len(inputs[0])
        self._where, how = call.args[1], {"ideals": ideals, "without": WITHOUT}
        self._picture = partial(kit.followed, call, n, min(length, 10 * n), **how)
        how = {"fabric": fabric, "own": self._picture, "without": WITHOUT}
        report = kit.on_ranks(_probe, call, inputs, **how)
        self.trace, self.elapsed_s = report.trace, report.elapsed_s
        self.held, self.returned = map(list, zip(*report.results, strict=True))
        self.total = [sum(column) for column in zip(*inputs, strict=True)]
        if n > 1 and length and not self.trace.messages():
            raise self.wrong("No message was sent through comm.", silent=True)

    def wrong(self, found, **facts):
        found += f"\nThe ring was {self._where}." * isinstance(self._where, list)
        return Wrong(found, picture=self._picture(), **facts)

    def compare(self, rows, **facts):
        """Raise at the first element that is not what is expected."""
        if wrong := kit.difference(rows, told=self._told):
            facts |= {"kept": self.held == self.inputs, "length": len(self.total)}
            raise self.wrong(wrong[0], **facts, **wrong[1])

    def check_traffic(self, hops):
        """Raise unless each chunk makes so many hops, between neighbors in the ring."""
        ring, n, length = self._where, len(self.held), len(self.total)
        sent, size = [self.trace.bytes_sent(r) for r in range(n)], length * FLOAT32
        if sum(sent) != hops * size or max(sent) > hops * -(-length // n) * FLOAT32:
            lines = [*map("rank {} sent {} bytes".format, range(n), sent)]
            lines.append(f"A ring sends {hops * size / n:g} per rank, on average.")
            raise self.wrong("\n".join(lines), sent=sent, whole=hops * size)
        sends = (e for e in self.trace.events if e.kind == "send")
        for rank, peer in ((e.rank, e.peer) for e in sends):
            if (ring.index(peer) - ring.index(rank)) % n not in (1, n - 1):
                raise self.wrong(f"Rank {rank} sent to rank {peer}.", strangers=True)


def _probe(comm, call, inputs):
    import torch  # here, because only ranks may load it

    tensor = torch.tensor(inputs, dtype=torch.float32)
    returned = call(comm, tensor)
    return tensor.tolist(), returned if type(returned) is int else repr(returned)


def _called(function, where, in_chunks, comm, tensor):
    given = split(tensor, comm.world_size) if in_chunks else tensor
    return kit.called(function, comm, given, where)


# fmt: off
HINTS = [
    Hint(lambda f: f["owners"], [
        "Return the index of the chunk that is complete on this rank; each rank "
        "completes a different one.",
        "In the player at the end, find on each rank the chunk with all stripes. In "
        "which chunk did that rank add in its last step?"]),
    Hint(lambda f: f["cluster"], [
        "Whose contributions are in the first wrong element? If those of other nodes "
        "are missing, look at your step between nodes, else at those inside.",
        "With 4 ranks per node, rank 1 ends the reduce-scatter with one chunk of its "
        "node's sum. Which rank of the next node has the same chunk?"]),
    Hint(lambda f: f["out"], [
        "Either too much leaves a node, or one NIC carries it while the others wait. "
        "How could each of a node's k ranks carry 1/k of it?",
        "Reduce-scatter inside the node first: each rank then owns one chunk of the "
        "node's sum, S/k, and only that has to be all-reduced between nodes."]),
    Hint(lambda f: f["kept"], [
        "Change the tensor itself: chunk += arrived writes in place, and chunk = chunk "
        "+ arrived makes a new one. Every rank ends as it began."]),
    Hint(lambda f: max(f["counts"]) > 1, [
        "A contribution is added twice. In the all-gather phase complete chunks "
        "replace what is there; before it, send the chunk that you added to last.",
        "In the player go to the first step with a red frame. In which phase is it, "
        "and what does your code do with what arrives there?"]),
    Hint(lambda f: sum(f["counts"]) == 1 and f["length"] % f["n"], [
        "Here the chunks differ in length. Is every element in one of your chunks?",
        "10 elements for 4 ranks are chunks of 3, 3, 2 and 2. Which lengths do yours "
        "have, and which elements are in none of them?"]),
    Hint(lambda f: sum(f["counts"]) == 1 or f["some"], [
        "An incomplete chunk was passed on. First add what arrives, in the chunk that "
        "you send next; with which chunk does the all-gather phase begin?",
        "In the player stop between the phases. If no cell has two stripes, nothing is "
        "added. Else: does rank 0 go on with the chunk that has all stripes?"]),
    Hint(lambda f: sum(f["counts"]) < f["n"], [
        "A contribution is missing. How many steps until a chunk has passed each rank?",
        "The table shows whose it is. With 4 ranks a chunk starts on one rank and has "
        "to visit the other three. Count the steps of your loop."]),
    Hint(lambda f: not f.get("counts") and f["place"] >= 0, [
        "These are no sums of this chunk. Does what arrives belong in another one, or "
        "is a receive buffer used before it is filled?",
        "In one step rank 1 receives from rank 0. Which chunk does rank 0 send, by "
        "your formula, and where does rank 1 put it? Both must be the same index."]),
    Hint(lambda f: f["strangers"], [
        "`ring` is the order of the ranks: the right neighbor is the next in the list, "
        "not rank + 1. Find this rank's place in it first, and count by places."]),
    Hint(lambda f: {*f["sent"]} == {f["whole"]}, [
        "Every message is as long as the whole tensor. Which part of it is new?",
        "With 4 ranks and 40 elements a ring sends 10 elements in each message. If you "
        "send 40, what are the other 30?"]),
    Hint(lambda f: f.get("sent") or f["rounds"], [
        "Each chunk makes n-1 hops in each phase, and in every round all ranks send. "
        "Does one rank do more than the others, or one step more than it needs?",
        "Rotate the player's picture of a step by one rank: in a ring it looks the "
        "same. In yours, which rank stands idle, or which step adds nothing?"]),
]
