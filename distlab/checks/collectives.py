"""Exercise 09: a broadcast from any root and an all-gather, in the fewest rounds."""

import math
from functools import partial
from random import SystemRandom

from distlab import collectives
from distlab.checks import kit
from distlab.checks.kit import Hint, Played, Wrong, check
from distlab.collectives.chunks import split

_THERE = "arguments", "chunks", "reductions"
WITHOUT = kit.modules_of("distlab.collectives", but=_THERE)
FLOAT32, IN_REAL_TIME = 4, 8  # with more ranks, a message takes one second
CONTRACT = kit.Contract(
    tree={
        "near first": "in round k of a broadcast, from 0 on, a message goes over the "
        "distance 2^k",
        "far first": "in a broadcast a rank sends over the largest distance first, a "
        "power of two, and the last round is that of distance 1",
    },
    direction={
        "up": "a broadcast goes from the root to higher ranks, and on from rank 0",
        "down": "a broadcast goes from the root to lower ranks, and on from rank n-1",
    },
    order={
        "by rank": "pieces[i] is the chunk of rank i",
        "own first": "pieces[i] is the chunk of the rank i places ahead of the own",
        "reversed": "pieces[i] is the chunk of rank n-1-i",
    },
)
LEGEND = "(a number is the rank whose chunk is there; ? is no rank's chunk)"


@check("{} ranks")
def broadcast(function, n, contract=kit.PUBLISHED):
    """Check that every rank gets the tensor of rank 0."""
    _broadcast(partial(_called, function, ()), n, 5, 0, contract)


@check("{} ranks, {} elements, root {}")
def broadcast_from(function, n, length, root, contract=kit.PUBLISHED):
    """Check that every rank gets the root's tensor."""
    _broadcast(partial(_called, function, (root,)), n, length, root, contract)


def _broadcast(call, n, length, root, contract):
    """Check the final tensors, then the senders and receivers, then the rounds."""
    inputs = _garbage(n, length)
    inputs[root] = _drawn(1, length)[0]
    how = {"numbers": length, "holds": lambda rank, chunk: rank == root}
    tree = partial(collectives.tree_broadcast, root=root)
    seats = [*kit.tree_seats(n, root)]
    if contract:
        up, far = contract.get("direction") == "up", contract.get("tree") == "far first"
        seats = seats[:1] * (up and far) or seats[1:] * up
    how["ideals"] = kit.librarys(tree, seats, **how)
    run = _CollectiveRun(_probe, call, inputs, call, **how)
    early, again, never = spread(run.trace, root)
    facts = {"early": early, "again": again, "never": never}
    if wrong := kit.difference([(inputs[root], held) for held in run.results]):
        rank = wrong[1]["rank"]
        began, held = [*map(str, inputs)], [*map(str, run.results)]
        whose = f"rank {began.index(held[rank])}" if held[rank] in began else "no rank"
        found = f"{wrong[0]}\nRank {rank} ends with what {whose} began with."
        facts |= {"of_0": {*held} == {began[0]}, "kept": held[rank] == began[rank]}
        raise run.wrong(found, **facts, lost="place" in wrong[1], **wrong[1])
    if early or again or never:
        pairs = ", ".join(f"rank {src} to rank {dst}" for src, dst in early)
        found = f"Sent by ranks without the tensor: {pairs or 'none'}\n"
        found += f"Sent to ranks that have it: {again}\nNot sent to: {never}"
        raise run.wrong(found, **facts)
    run.check_rounds(n)
    if contract:
        _check_tree(run, n, root, contract)


def _check_tree(run, n, root, contract):
    """Raise unless each rank gets its message from the rank that a contract says."""
    way = -1 if contract.get("direction") == "down" else 1
    for place in range(1, n):
        near = place - 2 ** (place.bit_length() - 1)
        of = place & (place - 1) if contract.get("tree") == "far first" else near
        pair = (root + way * of) % n, (root + way * place) % n
        if pair not in {(send.rank, recv.rank) for send, recv in run.trace.messages()}:
            raise run.wrong(f"Rank {pair[0]} sent nothing to rank {pair[1]}.")


@check("{} ranks, chunks of {} elements")
def all_gather(function, n, length, contract=kit.PUBLISHED):
    """Check that ranks fill their lists in ceil(log2 n) rounds by n - 1 chunks each."""
    pieces, garbage = _drawn(n, length), _garbage(n * n, length)
    inputs = [garbage[n * rank : n * (rank + 1)] for rank in range(n)]
    order = contract.get("order")
    rights = [_order(order, rank, n) for rank in range(n)]
    for rank, piece in enumerate(pieces):
        inputs[rank][rights[rank].index(rank)] = piece
    call = partial(_called, function, ())
    how = {"numbers": n * length}
    how["holds"] = lambda rank, place: rights[rank][place] == rank
    run = _CollectiveRun(_pieces_probe, call, inputs, partial(_in_chunks, call), **how)
    names = {str(piece): str(rank) for rank, piece in enumerate(pieces)}
    rows = [[names.get(str(piece), "?") for piece in held] for held, _ in run.results]
    for rank, row in enumerate(rows):
        right = [*map(str, rights[rank])]
        if row != right:
            place = next(place for place in range(n) if row[place] != right[place])
            table = kit.side_by_side(
                [
                    ([*map(str, r)], other)
                    for r, other in zip(rights, rows, strict=True)
                ],
                rank,
                place,
            )
            lost = row[rank] != str(rank) and {*row} != {*right}
            facts = {"kept": run.results[rank][1] == pieces, "there": row[place]}
            raise run.wrong("\n".join([*table, LEGEND]), lost=lost, **facts)
    sent, enough = [*map(run.trace.bytes_sent, range(n))], (n - 1) * length * FLOAT32
    if {*sent} != {enough}:
        found = f"Bytes sent, by rank: {sent}. The other chunks are {enough} bytes."
        raise run.wrong(found, again=max(sent) > enough, rounds=True)
    run.check_rounds(n)


def _order(order, rank, n):
    """Return whose chunk is at each place of a rank's list."""
    if order == "own first":
        return [(rank + place) % n for place in range(n)]
    return [*range(n)][:: -1 if order == "reversed" else 1]


def spread(trace, root: int) -> tuple[list, list, list]:
    """Return the (from, to) sent too early, the ranks that got it twice, and never."""
    since, early, again = {root: -math.inf}, [], []
    arrived = [m for m in trace.messages() if None not in m and m.recv.end is not None]
    for send, recv in sorted(arrived, key=lambda message: message.recv.end):
        if since.get(send.rank, math.inf) > send.start:
            early.append((send.rank, recv.rank))
        elif recv.rank in since:
            again.append(recv.rank)
        else:
            since[recv.rank] = recv.end
    return early, again, [r for r in range(trace.world_size) if r not in since]


class _CollectiveRun:
    """A run on ranks, and the verdicts on it; `shown`: the function that is drawn."""

    def __init__(self, probe, call, inputs, shown, *, numbers, **how):
        how["without"] = WITHOUT
        self._picture = partial(kit.followed, shown, len(inputs), numbers, **how)
        how = {"own": self._picture, "without": WITHOUT}
        report = kit.on_ranks(probe, call, inputs, **how)
        self.trace, self.results = report.trace, report.results
        if len(inputs) > 1 and not self.trace.messages():
            raise self.wrong("No message was sent through comm.", silent=True)

    def wrong(self, found, **facts):
        picture = self._picture() or Played(self.trace, "Your run")
        return Wrong(found, picture=picture, **facts)

    def check_rounds(self, n):
        """Raise if it took more than ceil(log2 n) rounds, or messages in sequence."""
        enough, took, what = (n - 1).bit_length(), self.trace.rounds(), "rounds"
        if took <= enough and n > IN_REAL_TIME:
            took, what = round(self.trace.duration_s()), "messages one after another"
        if took > enough:
            found = f"It took {took} {what}; {enough} are enough."
            raise self.wrong(found, rounds=what == "rounds", together=True)


def _drawn(rows, length, low=-99_999, high=99_999):
    numbers = [*map(float, SystemRandom().sample(range(low, high), rows * length))]
    return [numbers[length * row :][:length] for row in range(rows)]


def _garbage(rows, length):
    """Return numbers that occur in no sent tensor; a NaN at the end of each row."""
    drawn = _drawn(rows, length, 100_000, 999_999)
    return [[*row[:-1], math.nan] if length > 1 else row for row in drawn]


def _called(function, args, comm, given):
    return kit.called(function, comm, given, *args)


def _in_chunks(call, comm, tensor):
    call(comm, split(tensor, comm.world_size))


def _probe(comm, call, inputs):
    import torch  # here, because only ranks may load it

    tensor = torch.tensor(inputs)
    call(comm, tensor)
    return tensor.tolist()


def _pieces_probe(comm, call, inputs):
    """Return the pieces, and those in the list afterwards, or in one returned."""
    import torch

    pieces = [torch.tensor(piece) for piece in inputs]
    returned = call(comm, given := [*pieces])
    other = returned if isinstance(returned, list) else given
    return [p.tolist() for p in pieces], [torch.as_tensor(p).tolist() for p in other]


# fmt: off
HINTS = [
    Hint(lambda f: "is no rank here" in str(f["failure"].cause), [
        "A rank talks to one that is not there. Places go round, (rank + distance) % "
        "n; and of 6 ranks four have the tensor after two rounds: only two are left.",
        "The verdict names the rank and the partner it asked for. Work out the line "
        "for that rank by hand: where is % n missing, or a test that the place is "
        "below n?"]),
    Hint(lambda f: type(f["failure"]).__name__ == "Deadlock", [
        "A rank waits for a partner that does something else. In one round a rank "
        "sends, or receives, or has nothing to do: do both name each other?",
        "For two ranks that wait, write down rank and place, counted from the root."]),
    Hint(lambda f: f["of_0"], [
        "Every rank has what rank 0 began with, and the root is another one. Count "
        "from the root: place = (rank - root) % n.",
        "Replace every comparison of comm.rank by one of `place`. When you compute "
        "whom to send to, you need a rank again: how do you get from a place to a "
        "rank?"]),
    Hint(lambda f: f.get("early") or f["again"], [
        "A rank sends what it does not have yet, or to a rank that has it. Which ranks "
        "have what after each round, and what is missing in the last one?",
        "In the player look for messages that leave an empty cell, or fill none."]),
    Hint(lambda f: f["never"], [
        "No message brings the tensor to some ranks. If n is no power of two, the last "
        "round is not full, and has to be there all the same.",
        "Look at the condition of your loop for n = 3 and n = 6, and write down the "
        "distances it takes. Is the last distance smaller than n, and do you stop "
        "before it?"]),
    Hint(lambda f: f["kept"], [
        "What was given is unchanged. comm.recv(tensor, ...) and copy_ write into a "
        "tensor; tensor = ... gives its name to a new one.",
        "Look for `tensor =` or `pieces[...] =` in your function. Which of your "
        "lines receives a message, and into what? Copy from there into what you were "
        "given."]),
    Hint(lambda f: f["lost"], [
        "What a rank has from the start, or was sent, is changed. The root and an own "
        "chunk are never received into, and NaN plus anything is NaN.",
        "In the player, step to the first message into the root, or into a cell that "
        "was full. Which condition lets that rank receive? Do you add, where a copy "
        "is enough?"]),
    Hint(lambda f: f["there"] != "?", [
        "Chunks stand in other places. In the order in which they come they begin with "
        "the rank itself; pieces[0] is for the chunk of rank 0 on all ranks.",
        "By how many places is the row of rank 1 turned in the table? And of rank 2?"]),
    Hint(lambda f: f["there"], [
        "A chunk never came, or garbage was sent in its place. Which chunks has a rank "
        "after one, two and three rounds, and how many are missing in the last?",
        "Six ranks: 1, 2, 4 chunks, and then? Which two are missing on rank 0?"]),
    Hint(lambda f: f["rounds"], [
        "After each round twice as many ranks can have the tensor, or each rank twice "
        "as many chunks. Which rank stands idle, or sends less than it has?",
        "In the player see the second round. To which rank are both of a rank's chunks "
        "new? torch.stack and torch.cat make one message of several chunks."]),
    Hint(lambda f: f["together"], [
        "Messages that a rank begins together leave one after another all the same: it "
        "has one NIC. Which of the busiest rank's messages could another rank send?",
        "In the player, look at the busiest rank in the first round. A rank that "
        "received something in a round can send in the next: halve the list of ranks "
        "that one rank serves."]),
]
