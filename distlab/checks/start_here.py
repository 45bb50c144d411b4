"""Exercise 00: ranks act in turn, judged by messages and never by the clock.

    rank 0   ──speaks──┤ send
                          ╲
    rank 1                 ▼ recv ┤ send
                                     ╲
    rank 2                            ▼ recv ├──speaks──

What rank 0 did *happened before* what rank 2 does if a chain of messages leads from one
to the other; an order that only the clock shows is luck.

Source: Lamport, "Time, clocks, and the ordering of events in a distributed system"
(1978).
"""

import math
import time
from functools import partial
from itertools import pairwise, permutations

from distlab.checks import kit
from distlab.checks.kit import Hint, Played, Wrong, check
from distlab.errors import Deadlock, InvalidArgument, MessageMismatch, WorldTimeout

WITHOUT = kit.modules_of("distlab.collectives")
CONTRACT = kit.Contract(
    order={
        "rising": "ranks speak in rising order: 0, 1, 2, ...",
        "falling": "ranks speak in falling order: n-1, n-2, ..., 0",
        "even first": "the even ranks speak first, then the odd ones, both rising",
    },
    rounds={
        "alike": "each round of step 2 has this order",
        "zigzag": "each second round of step 2 has the opposite order",
    },
    calls={
        "once": "a rank calls speak once in its turn",
        "twice": "a rank calls speak twice in its turn",
    },
)
SPEAK_S, PREPARE_S = 0.003, 0.02


@check("{} ranks")
def speak_in_order(function, n, contract=kit.PUBLISHED):
    """Check that each rank speaks once, after the one before it by messages."""
    trace = _run(function, n)
    _check_order(trace, _turns(trace, "speak", 1, contract))


@check("{} ranks, {} rounds")
def speak_in_rounds(function, n, rounds, contract=kit.PUBLISHED):
    """Check the same for several rounds, with at most one message per turn."""
    trace = _run(function, n, rounds)
    _check_order(trace, _turns(trace, "speak", rounds, contract))
    _check_messages(trace, n * rounds)


@check("{} ranks")
def prepare_and_speak(function, n, contract=kit.PUBLISHED):
    """Check that all prepare in parallel, then speak in order, with n - 1 messages."""
    trace = _run(function, n, prepares=True)
    prepared, turns = _turns(trace, "prepare"), _turns(trace, "speak", 1, contract)
    for turn in turns:
        if prepared[turn.rank].end > turn.start:
            found = f"Rank {turn.rank} spoke before it had prepared."
            raise _wrong(trace, found, why="prepares late")
    _check_order(trace, turns)
    for last, turn in permutations(prepared, 2):
        if happened_before(trace, last, turn):
            found = _table(prepared, turn, "prepares", f"← waited for rank {last.rank}")
            raise _wrong(trace, found, why="prepares late")
    _check_messages(trace, n - 1)


def happened_before(trace, last, turn) -> bool:
    """Return True if a chain of messages leads from one turn's end to another's start.

    Only times of one rank are compared, never those of two.
    """
    known = {last.rank: last.end}  # rank -> time from which it knows of the turn's end
    for send, recv in sorted(trace.messages(), key=lambda pair: pair[1].end):
        if send.start >= known.get(send.rank, math.inf):
            known.setdefault(recv.rank, recv.end)
    return turn.start >= known.get(turn.rank, math.inf)


def _run(function, n, *more, prepares=False):
    report = kit.on_ranks(_probe, function, [prepares] * n, args=more, without=WITHOUT)
    if any(event.kind == "barrier" for event in report.trace.events):
        raise _wrong(report.trace, "comm.barrier was called.", ready_made=["barrier"])
    return report.trace


def _probe(comm, function, *more):
    """Run the learner's function; lower ranks speak longer, to expose missing waits."""

    def act(name, seconds):
        comm.mark(f"rank {comm.rank} {name}s")
        with comm.work(name):
            time.sleep(seconds)

    *more, prepares = more
    speak = partial(act, "speak", SPEAK_S * (comm.world_size - comm.rank))
    acts = [partial(act, "prepare", PREPARE_S), speak] if prepares else [speak]
    kit.called(function, comm, *acts, *more)


def _turns(trace, name, rounds=1, contract=kit.PUBLISHED):
    """Return the turns in the required order, or raise if some are missing."""
    times = 2 if contract.get("calls") == "twice" else 1
    wanted, order = rounds * times, [*range(trace.world_size)]
    if contract.get("order") == "even first":
        order = order[::2] + order[1::2]
    elif contract.get("order") == "falling":
        order.reverse()
    ways = 1, -1 if rounds > 1 and contract.get("rounds") == "zigzag" else 1
    own = [trace.of(rank, "work") for rank in range(trace.world_size)]
    own = [[event for event in events if event.label == name] for events in own]
    calls = [len(events) for events in own]
    if any(count != wanted for count in calls):
        marks = [f"  ← asked for: {wanted}" * (count != wanted) for count in calls]
        rows = [f"{r:>4}  {count:<5}{marks[r]}" for r, count in enumerate(calls)]
        lines = [f"rank  calls of {name}()", *map(str.rstrip, rows)]
        raise _wrong(trace, "\n".join(lines), calls=calls)
    return [
        event
        for number in range(rounds)
        for rank in order[:: ways[number % 2]]
        for event in own[rank][number * times :][:times]
    ]


def _check_order(trace, turns):
    for last, turn in pairwise(turns):
        if not happened_before(trace, last, turn):
            found = _table(turns, turn, "speaks", "← too early")
            found += f"\nNo chain of messages leads from rank {last.rank}, when it has "
            found += f"spoken, to rank {turn.rank}, before it speaks."
            first = turns.index(turn) % trace.world_size == 0
            why = "next round" if first else "another rank"
            raise _wrong(trace, found, why=why if trace.messages() else "no message")


def _check_messages(trace, most):
    sent = [trace.messages_sent(rank) for rank in range(trace.world_size)]
    if sum(sent) > most:
        lines = [f"The order is right. Of {sum(sent)} messages, {most} are enough."]
        lines += [f"rank {rank}: sent {count}" for rank, count in enumerate(sent)]
        raise _wrong(trace, "\n".join(lines), sent=sent)


def _wrong(trace, found, **facts):
    return Wrong(found, picture=Played(trace, "Your run"), **facts)


def _table(turns, wrong, verb, mark):
    """Return a table of the turns: round, rank, begin and end on the clock."""
    zero = min(turn.start for turn in turns)
    n = len({turn.rank for turn in turns})
    rounds = len(turns) > n
    lines = ["round  " * rounds + f"rank  {verb} from   until"]
    for place, turn in enumerate(turns):
        begin, end = (f"{1000 * (s - zero):.0f} ms" for s in (turn.start, turn.end))
        row = f"{place // n + 1:>5}  " * rounds + f"{turn.rank:>4}  "
        row += f"{begin:>{len(verb) + 5}}  {end:>6}"
        lines.append(row + f"  {mark}" * (turn is wrong))
    return "\n".join(lines)


# fmt: off
HINTS = [
    Hint(lambda f: f.get("ready_made") or f["failure"].trace.collectives()
         or any(e.kind == "barrier" for e in f["failure"].trace.events), [
        "Write it from send and receive alone. In a barrier or a collective every "
        "rank waits for all others; here a rank needs to know one thing, that the one "
        "before it has spoken.",
        "Rank 2 of four wants to begin. Which single rank knows that rank 1 has "
        "finished? Let that one send it a message."]),
    Hint(lambda f: f["calls"], [
        "Every rank runs the whole of your function, so a loop over all ranks runs on "
        "each of them. How often does the rank that the table marks reach the call?",
        "Follow that rank line by line, also past the end of an if. With no rounds, "
        "which lines still run? And speak without brackets only names a function."]),
    Hint(lambda f: f.get("why") == "no message" or (
         isinstance(f["failure"], WorldTimeout)
         and not f["failure"].trace.messages()), [
        "No rank sent a message, and a rank sees nothing else of another. If the order "
        "came out right by the clock, that was luck: from whom can a rank learn that "
        "it may speak?",
        "Each rank has its own memory, so no variable changes in two of them, and a "
        "sleep only guesses how long the others need. What could rank 0 do when it "
        "has finished that rank 1 would notice?",
        "Write down for rank 1: what do I wait for, and what do I do when I have "
        "finished? Then for rank 0, which no rank comes before."]),
    Hint(lambda f: f["why"] == "next round", [
        "A round starts before the last one has ended: rank 0 goes on as soon as its "
        "own turn is over. From whom can it learn that all have spoken?",
        "Three ranks, two rounds: write down the six turns in order, and between each "
        "two who sends to whom. Which of these five messages do you not send?"]),
    Hint(lambda f: f["why"] == "another rank", [
        "What the marked rank received before its turn does not say that the one "
        "before it has spoken. What does the sender of that message know when it "
        "sends? Receive first, then speak, then send.",
        "In the player find the last arrow that ends at the marked rank before its "
        "turn: has the rank it comes from spoken, or heard from the one that has?",
        "A message carries what its sender knows to its receiver, not back: that your "
        "own send has ended says nothing about the rank that took it."]),
    Hint(lambda f: f["sent"], [
        "A turn needs one message, from the rank that has spoken to the next one. "
        "Which of yours carry no news, or take a detour through another rank?",
        "For each arrow in the player ask what its receiver knows afterwards that it "
        "did not know before. Does each begin or end at the same rank?"]),
    Hint(lambda f: f["why"] == "prepares late", [
        "Prepare first, and wait only before you speak. Which of the two tasks needs "
        "to wait for another rank?",
        "Which line of your function receives, and what stands after it? What stands "
        "before it is done by all ranks at the same time."]),
    Hint(lambda f: isinstance(f["failure"].cause, InvalidArgument) or (
         isinstance(f["failure"], Deadlock) and "waited in send" in str(f["failure"])
         and not f["failure"].cycle), [
        "No rank comes before rank 0, none after the last one, and a single rank "
        "is both. For whom must the first turn wait, and whom must the last one tell?",
        "The story names the rank and the line. Put its number into the expression "
        "for its peer: what comes out, and is that rank there to receive?"]),
    Hint(lambda f: isinstance(f["failure"].cause, MessageMismatch), [
        "What is sent with send_object is received with recv_object, and what is sent "
        "with send with recv, into a tensor of the same length and dtype.",
        "The message names the call that did not fit. Look at the pair of lines: "
        "which one sends, which one receives, and do both names end in _object?"]),
]
