"""Exercise 10: a reduce-scatter, a ring and a hierarchical all-reduce."""

from functools import partial
from itertools import pairwise
from operator import index, mul
from random import SystemRandom

from distlab import collectives
from distlab.checks import kit
from distlab.checks.kit import Hint, Played, Wrong, check
from distlab.collectives.chunks import chunk_edges, chunk_lengths, split
from distlab.links import LINKS
from distlab.simulated import Nodes
from distlab.trace import counts_in
from distlab.units import readable_seconds

_THERE = "arguments", "chunks", "reductions"
WITHOUT = kit.modules_of("distlab.collectives", but=_THERE)
FLOAT32, SLACK = 4, 1.05
INSIDE, OUTSIDE = LINKS["NVLink 4"], LINKS["Ethernet 25G RDMA"]
ASTRAY = "out of range", "not in list", "from itself"  # no such place, or its own
_RAW = "\n(These are no sums of contributions, so the numbers are shown.)"
_OPERATORS = {"sum": sum, "max": max, "min": min}
CONTRACT = kit.Contract(
    operator={
        "sum": "elements are combined by their sum",
        "max": "elements are combined by their maximum",
        "min": "elements are combined by their minimum",
    },
    owner={
        "next": "the reduce-scatter completes, on each rank, the chunk with the number "
        "of the place to which it sends",
        "own": "the reduce-scatter completes, on each rank, the chunk with the number "
        "of its own place in the ring",
    },
    direction={
        "right": "a rank sends to its right neighbor only, the next in the ring",
        "left": "a rank sends to its left neighbor only, the one before it in the ring",
    },
)


@check("{} of {} ranks, {} elements")
def reduce_scatter(function, n, world, length, contract=kit.PUBLISHED):
    """Check that each rank of a ring ends with a complete chunk, and its index."""
    ring = _drawn_ring(n, world)
    call = partial(_called, function, ring, True)
    run = _RingRun(call, ring, _halves(world, length), contract)
    spans = [slice(*ends) for ends in pairwise(chunk_edges(length, n))]
    owners = [run.returned[rank] for rank in ring]
    if {*owners} != {*range(n)}:
        found = f"Ranks {ring} returned {', '.join(map(str, owners))}."
        raise run.wrong(found, index=True, complete=run.is_complete(spans))
    if contract and owners != [(place + run.ahead) % n for place in range(n)]:
        raise run.wrong(f"Places 0 to {n - 1} of the ring returned {owners}.")
    run.compare({rank: spans[run.returned[rank]] for rank in ring}, spans)
    run.check_traffic(n - 1)


@check("{} of {} ranks, {} elements")
def all_reduce(function, n, world, length, contract=kit.PUBLISHED):
    """Check that every rank of a ring ends with the sum, in 2(n-1) rounds of chunks."""
    ring = _drawn_ring(n, world)
    call = partial(_called, function, ring, False)
    run = _RingRun(call, ring, _halves(world, length), contract)
    run.compare(dict.fromkeys(ring, slice(None)))
    run.check_traffic(2 * (n - 1))


@check("{} nodes of {} ranks, {} elements")
def hierarchical(function, nodes, per_node, length, contract=kit.PUBLISHED):
    """Check the sum on a cluster, in the time of rings inside and between nodes."""
    n, fabric = nodes * per_node, Nodes(per_node, INSIDE, OUTSIDE, nics=per_node)
    call = partial(_called, function, per_node, False)
    run = _RingRun(call, range(n), _halves(n, length), contract, fabric)
    run.compare(dict.fromkeys(range(n), slice(None)))
    inside, outside = (FLOAT32 * -(-length // ranks) for ranks in (per_node, n))
    target_s = 2 * SLACK * (per_node - 1) * INSIDE.seconds(inside)
    target_s += 2 * SLACK * (nodes - 1) * OUTSIDE.seconds(outside)
    if run.elapsed_s > target_s:
        took, target = map(readable_seconds, (run.elapsed_s, target_s))
        out = bytes_out(run.trace, per_node)
        found = f"The sums are right. It took {took}; the target is {target}.\n"
        found += f"Bytes that left their node, by rank: {', '.join(map(str, out))};\n"
        found += f"{2 * (nodes - 1) * outside} per rank are enough."
        raise Wrong(found, picture=Played(run.trace, "On the cluster"), out=out)


def bytes_out(trace, per_node: int) -> list[int]:
    """Return the bytes that each rank sent to ranks of other nodes."""
    out = [0] * trace.world_size
    for event in trace.events:
        if event.kind == "send" and event.peer // per_node != event.rank // per_node:
            out[event.rank] += event.bytes
    return out


def _halves(ranks, length):
    """Draw multiples of 1/2, whose sums no whole numbers hold, and float32 does."""
    return [[number / 2 for number in row] for row in kit.draws(ranks, length)]


def _drawn_ring(n, world):
    """Draw a ring that is not in order, forwards or backwards, if there is one."""
    while True:
        ring = SystemRandom().sample(range(world), n)
        turns = {(right - left) % n for left, right in pairwise([*ring, ring[0]])}
        if turns not in ({1}, {n - 1}) or n == world < 4:
            return ring


def _called(function, where, in_chunks, comm, tensor):
    if isinstance(where, list) and comm.rank not in where:
        return None  # it takes no part
    given = split(tensor, len(where)) if in_chunks else tensor
    return kit.called(function, comm, given, where)


def _probe(comm, call, inputs):
    import torch  # here, because only ranks may load it

    tensor = torch.tensor(inputs, dtype=torch.float32)
    returned = call(comm, tensor)
    try:
        return tensor.tolist(), index(returned)  # of Python, NumPy or torch
    except TypeError:
        return tensor.tolist(), repr(returned)


class _RingRun:
    """A run of `call`, a partial of `_called`, on a ring, and the checks of it."""

    def __init__(self, call, ring, inputs, contract, fabric=None):
        self.call, self.ring, self.inputs, self.fabric = call, ring, inputs, fabric
        self.contract = contract
        combined = _OPERATORS[contract.get("operator", "sum")]
        world, length = len(inputs), len(inputs[0])
        how = {"holds": lambda rank, _: rank in ring, "without": WITHOUT}
        if len(ring) == world and not fabric and self.is_sum and self.way > 0:
            how["ideals"] = _ideals(ring, length, in_chunks=call.args[2])
        shown = min(length, 10 * world)
        self.picture = partial(kit.followed, call, world, shown, **how)
        how = {"fabric": fabric, "own": self.picture, "without": WITHOUT}
        try:
            report = kit.on_ranks(_probe, call, inputs, **how)
        except Wrong as failed:
            failed.facts["few"] = length < world
            raise
        self.trace, self.elapsed_s = report.trace, report.elapsed_s
        self.held, self.returned = map(list, zip(*report.results, strict=True))
        rows = zip(*(inputs[rank] for rank in ring), strict=True)
        self.total = list(map(combined, rows))

    @property
    def is_sum(self):
        """True if elements are added."""
        return self.contract.get("operator", "sum") == "sum"

    @property
    def way(self):
        """The distance in the ring to the place to which a rank sends: 1 or -1."""
        return -1 if self.contract.get("direction") == "left" else 1

    @property
    def ahead(self):
        """The distance to the place whose number the complete chunk has."""
        return 0 if self.contract.get("owner") == "own" else self.way

    def wrong(self, found, **facts):
        """Return `Wrong` with the finding, the picture, and facts."""
        found += f"\nThe ring was {self.ring}." * (self.fabric is None)
        facts |= {"in_chunks": self.call.args[2], "cluster": self.fabric is not None}
        facts |= {"n": len(self.ring), "by_rank": self._takes_ranks_for_places()}
        facts |= {"sent": any(map(self.trace.messages_sent, self.ring))}
        picture = self.picture()
        facts |= {"again": picture is not None and _sends_again(picture.trace)}
        return Wrong(found, picture=picture, **facts)

    def _takes_ranks_for_places(self):
        """Return True if it sends past neighbors, or chunks cut for the world."""
        ring, n, world = self.ring, len(self.ring), len(self.held)
        if n == world:
            return False
        sends = [event for event in self.trace.events if event.kind == "send"]
        next_to = {(a, b) for a, b in pairwise([*ring, ring[0]])}
        past = (
            {(e.rank, e.peer) for e in sends} - next_to - {(b, a) for a, b in next_to}
        )
        sizes = {event.bytes // FLOAT32 for event in sends}
        of_ring, of_world = (set(chunk_lengths(len(self.total), k)) for k in (n, world))
        return bool(past) or (sizes <= of_world and not sizes <= of_ring)

    def _bytes_by_place(self):
        """Return the bytes of an all-reduce: in each phase, all chunks but one."""
        n, size = len(self.ring), len(self.total)
        length = chunk_lengths(size, n)
        kept = [place + self.ahead for place in range(n)]
        unsent = [length[i % n] + length[(i + self.way) % n] for i in kept]
        return [FLOAT32 * (2 * size - each) for each in unsent]

    def is_complete(self, spans):
        """Return True if every rank of the ring has one of these chunks complete."""
        return all(
            any(self.held[rank][span] == self.total[span] for span in spans)
            for rank in self.ring
        )

    def compare(self, spans, chunks=()):
        """Raise at the first element in `spans`, by rank, that is not the sum."""
        at = [spans.get(rank, slice(0)) for rank in range(len(self.held))]
        found, facts = self._difference(at) or ("", {})
        if "place" in facts and self.is_sum:
            place = facts["place"] + (at[facts["rank"]].start or 0)
            inputs = kit.contributions(len(self.held), len(self.total))
            described = _RingRun(self.call, self.ring, inputs, {}, self.fabric)
            found = (described._difference(at, described=True) or [found + _RAW])[0]
            facts = self._facts(place, described)
        if found:
            raise self.wrong(found, complete=self.is_complete(chunks), **facts)

    def _difference(self, at, **how):
        both = zip(at, self.held, strict=True)
        return kit.difference([(self.total[s], own[s]) for s, own in both], **how)

    def _facts(self, place, described):
        """Return facts of the sums at an index; `described`: the contributions' run."""
        own = [row[place] for row in self.inputs]
        yours = [self.held[rank][place] for rank in self.ring]
        counts = [
            counts_in(described.held[rank][place], len(own)) for rank in self.ring
        ]
        return {
            "kept": self.held == self.inputs,
            "still": yours == [own[rank] for rank in self.ring],
            "elsewhere": self.total[place] in yours,
            "most": max((sum(each) for each in counts if each), default=0),
            "twice": any(max(each) > 1 for each in counts if each),
            "rounded": any(0 < abs(y - self.total[place]) < len(own) for y in yours),
            "mixed": yours != [each and sum(map(mul, each, own)) for each in counts],
        }

    def check_traffic(self, hops):
        """Raise unless chunks make `hops` between neighbors, in as many rounds."""
        ring, n, size = self.ring, len(self.ring), FLOAT32 * len(self.total)
        sends = [event for event in self.trace.events if event.kind == "send"]
        sent = [self.trace.bytes_sent(rank) for rank in ring]
        pairs = [(ring.index(event.rank), ring.index(event.peer)) for event in sends]
        far = [ring[a] for a, b in pairs if (a - b) % n not in (1, n - 1)]
        longest = FLOAT32 * -(-len(self.total) // n)
        found = ""
        if sum(sent) != hops * size or max(sent) > hops * longest:
            found = f"They sent {sent} bytes; {hops * size / n:g} each are enough."
            whole = {event.bytes for event in sends} == {size}
            found += "\nEach message was the whole tensor." * whole
        elif self.contract and (
            back := [a for a, b in pairs if n > 2 and (b - a) % n != self.way % n]
        ):
            found = f"Rank {ring[back[0]]} sent to its other neighbor."
        elif self.contract and hops > n and sent != self._bytes_by_place():
            found = f"They sent {sent} bytes, not {self._bytes_by_place()}."
        elif far:
            found = f"Rank {far[0]} sent to ranks that are not its neighbors."
        elif self.trace.rounds() > hops:
            found = f"It took {self.trace.rounds()} rounds; {hops} are enough."
        if found:
            many = max(map(self.trace.messages_sent, ring)) > hops
            what = {"many" if many else "traffic" if any(sent) else "silent": True}
            raise self.wrong(found, **what)


def _sends_again(trace):
    """Return True if a rank sends one and the same partial sum twice in a row."""
    sent = trace.shares.sent.values() if trace.shares else ()
    return any(
        first == second and first.chunks
        for payloads in sent
        for first, second in pairwise(payloads)
    )


def _ideals(ring, length, in_chunks):
    """Return the library's runs that are as good; first the one of lesson 10."""
    library = collectives.ring_all_reduce, collectives.ring_reduce_scatter
    n, first = len(ring), int(in_chunks)  # seat i of the second sends chunk i - 1 first
    places = [(ring.index(rank) + first) % n for rank in range(n)]
    placed = ([seats[place] for place in places] for seats in kit.ring_seats(n))
    return kit.librarys(library[first], placed, numbers=length)


# fmt: off
HINTS = [
    Hint(lambda f: f["few"] and ASTRAY[0] in str(f["failure"].cause), [
        "There are fewer elements than ranks, and some chunks are empty. How many "
        "chunks does your function get then? split(tensor, n) always makes n.",
        "torch.chunk and torch.split make no empty chunks: of 2 elements for 5 ranks "
        "they make 2. Print the number of yours in front of the line that failed."]),
    Hint(lambda f: f.get("by_rank") or any(
        said in str(f["failure"].cause) for said in ASTRAY), [
        "Is this rank in the ring that the function got? Then count by places, not by "
        "ranks: at which place is it, who is at the next, how many places are there?",
        "ring[rank + 1] is to the right of *place* `rank`. There are len(ring) places, "
        "maybe fewer than comm.world_size, and after the last one comes place 0."]),
    Hint(lambda f: f["complete"] and (f.get("index") or f["elsewhere"]), [
        "Return the index of the chunk that is complete on this rank.",
        "In the player at the end, find on each rank the chunk with all stripes. In "
        "which chunk did that rank add in its last step?"]),
    Hint(lambda f: not f["sent"] and (f.get("index") or f["kept"]), [
        "No rank sent anything. How many steps does your loop make for this ring?",
        "A chunk starts on one rank and has to visit the $n-1$ others: with 2 ranks "
        "that is one step."]),
    Hint(lambda f: f["again"] and not f["complete"] and f["n"] > 2, [
        "A rank sends the same chunk in two steps, one after the other. In each step "
        "send the chunk that you added to in the step before.",
        "In the player read the label on one rank's arrow, such as c1, from step to "
        "step. With 4 ranks a chunk starts on one and has to visit the other three."]),
    Hint(lambda f: f.get("index"), [
        "Return the index of the chunk that is complete on this rank, a number from 0 "
        "to $n-1$. In this run no such chunk is on every rank yet.",
        "In the player at the end, which chunk has the most stripes on a rank, and "
        "which contribution does it lack?"]),
    Hint(lambda f: f["kept"], [
        "Every rank ends as it began. chunk += arrived writes into the tensor; chunk = "
        "chunk + arrived, or chunks[i] = ..., makes another one beside it.",
        "Look at the line that adds. Is there a + with = behind it, on a tensor that "
        "is a view of what you were given? Print chunks[0] before and after your "
        "function."]),
    Hint(lambda f: f["still"] and f["in_chunks"], [
        "This chunk is on every rank what it was: it was never sent, or never added "
        "to. Which chunk does a rank send in its first step, and which in the next?",
        "In the player, watch this chunk on one rank from the first step to the "
        "last. Write down the index that your loop sends in steps 0, 1 and 2: which "
        "number never comes?"]),
    Hint(lambda f: f["still"], [
        "This element never travelled: on every rank it is what it was. Into how many "
        "chunks did you cut, and does the ring pass all of them on?",
        "A ring of 4 cuts 10 elements into 3, 3, 2 and 2. How many do yours hold?"]),
    Hint(lambda f: f["most"] == 1 and f["in_chunks"] and not f["mixed"], [
        "Nothing was added. What arrives replaced what was there: receive it into a "
        "buffer of its own, then add.",
        "Look at the second argument of sendrecv. If it is the chunk itself, the own "
        "contribution is overwritten: torch.empty_like(chunk) makes another place."]),
    Hint(lambda f: f["twice"], [
        "A contribution is counted twice. Complete chunks replace what is there; and "
        "what is received into a chunk must not be added to it again.",
        "In the player go to the first step with a red frame. What came in there?"]),
    Hint(lambda f: not f["cluster"] and (f["most"] == 2 < f["n"] or not (
        f["mixed"] or f["elsewhere"])), [
        "A contribution is missing. In each step send the chunk that you added to in "
        "the step before. Do you stop early, or skip one?",
        "With 4 ranks a chunk starts on one and has to visit the other three. Write "
        "down for one rank what it sends in each step, and count the steps."]),
    Hint(lambda f: f["rounded"], [
        "This sum is nearly right: its fraction is lost. In which line do the elements "
        "get another dtype than the tensor has?",
        "Print the dtype of your buffer, of what arrived and of the chunk. They are "
        "one and the same with torch.empty_like(chunk)."]),
    Hint(lambda f: f["mixed"], [
        "This sum has something in it from another chunk, or from a buffer before it "
        "was filled. Which chunk does your left neighbor send in this step?",
        "It sends chunk _, you add it into chunk _ and send that on: is it one index? "
        "Do your indices count places, and go the same way as the chunk?"]),
    Hint(lambda f: f["elsewhere"], [
        "This sum is complete, but only on other ranks. Are complete chunks passed on "
        "often enough, and is what arrives written into the tensor?",
        "In the player, what does a rank send after it completes a chunk? (chunks[i] = "
        "... puts another tensor into the list, and the one that was cut stays.)"]),
    Hint(lambda f: f["cluster"] and "most" in f, [
        "Whose contributions are in it? If another node's are missing, look at your "
        "step between nodes: does each rank bring the chunk that it completed?",
        "Rank 1 of a node of 4 ends the reduce-scatter with one chunk of the node's "
        "sum. Which rank of the next node has the same chunk?"]),
    Hint(lambda f: f["out"], [
        "Either too much leaves a node, or one NIC carries it while the others wait. "
        "How could each of a node's k ranks carry 1/k of it?",
        "One of your functions leaves each rank of a ring with a complete chunk of its "
        "own. For which ring does that help, before anything leaves a node?"]),
    Hint(lambda f: f["many"], [
        "The sums are right, and a rank sends more often than it has to. How many "
        "other ranks does a chunk have to visit in a phase?",
        "$n-1$ steps in each phase. What does your last step bring to whom?"]),
    Hint(lambda f: f["traffic"], [
        "In each round every rank sends one chunk, $S/n$, to its neighbor in `ring`, "
        "and passes on what came. What of yours is longer, goes elsewhere, or has to "
        "wait?",
        "Rotate the player's picture of a step by one rank: a ring looks the same."]),
]
