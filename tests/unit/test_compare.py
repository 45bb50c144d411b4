"""`compare` stops where two runs first part, and says what differs there."""

import copy
import itertools
import re

import pytest

from distlab.errors import InvalidArgument
from distlab.show import compare
from distlab.trace import Contributions, Event, Shares, Trace

N = 4


def ring_run(n=N, shares=True):
    """Return a ring all-reduce of `n` chunks of 8 B, with whose share is where."""
    events, tables = [], [[tuple(_own(n, r) for _ in range(n))] for r in range(n)]
    sent = {}
    for step in range(2 * (n - 1)):
        now = [list(rank[-1]) for rank in tables]
        for src in range(n):
            dst = (src + 1) % n
            chunk = (src - step if step < n - 1 else src + 1 - (step - n + 1)) % n
            carried, there = tables[src][step][chunk], tables[dst][step][chunk]
            adds = step < n - 1
            summed = tuple(a + b for a, b in zip(carried, there, strict=True))
            now[dst][chunk] = summed if adds else carried
            sent.setdefault((src, dst), []).append(Contributions((chunk,), (carried,)))
            times = float(step), step + 0.5
            events.append(Event(src, *times, "send", dst, 8, step + 1, ""))
            events.append(Event(dst, *times, "recv", src, 8, step + 1, ""))
        for rank in range(n):
            tables[rank].append(tuple(now[rank]))
    held = [list(enumerate(rank)) for rank in tables]
    known = Shares([2 * k for k in range(n + 1)], held, sent) if shares else None
    return Trace(n, events, shares=known)


def _own(n, rank):
    return tuple(int(rank == r) for r in range(n))


def changed(change, **options):
    """Return a ring in which `change(events, shares)` has happened."""
    trace = ring_run(**options)
    events, shares = list(trace.events), copy.deepcopy(trace.shares)
    change(events, shares)
    return Trace(N, events, shares=shares)


def at(events, kind, rank, step):
    """Return where in `events` is what `rank` did in `step`, counted from 1."""
    found = [
        number
        for number, event in enumerate(events)
        if (event.kind, event.rank, event.step) == (kind, rank, step)
    ]
    (number,) = found
    return number


def wrong_bytes(events, shares):
    for kind, rank in (("send", 1), ("recv", 2)):
        number = at(events, kind, rank, 3)
        events[number] = events[number]._replace(bytes=12)


def missing(events, shares):
    del events[at(events, "send", 1, 3)]
    del events[at(events, "recv", 2, 3)]


def extra(events, shares):
    events.append(Event(0, 2.0, 2.5, "send", 2, 8, 3, ""))
    events.append(Event(2, 2.0, 2.5, "recv", 0, 8, 3, ""))


def elsewhere(events, shares):
    """Rank 1 sends to rank 3, and not to rank 2."""
    for kind, rank, end in (("send", 1, 3), ("recv", 2, 1)):
        number = at(events, kind, rank, 3)
        there = {"peer": end} if kind == "send" else {"rank": 3}
        events[number] = events[number]._replace(**there)


def other_chunk(events, shares):
    payload = shares.sent[1, 2][2]
    shares.sent[1, 2][2] = payload._replace(chunks=((payload.chunks[0] + 1) % N,))


def held_after(step, rank, chunk, counts):
    """Return a change of whose share is in a chunk from a step on."""

    def change(events, shares):
        for number in range(step, len(shares.held[rank])):
            table = list(shares.held[rank][number][1])
            table[chunk] = counts
            shares.held[rank][number] = number, tuple(table)

    return change


def died(events, shares):
    events[:] = [e for e in events if e.step <= 3]
    events.append(Event(3, 3.2, 3.2, "fault", None, 0, 3, "kill"))
    events.append(Event(0, 3.1, None, "recv", 3, 8, 4, ""))


def longer(events, shares):
    for kind, rank, peer in (("send", 2, 0), ("recv", 0, 2)):
        events.append(Event(rank, 9.0, 9.5, kind, peer, 8, 7, ""))


def meets(events, shares):
    events += [Event(r, 2.6, 2.9, "barrier", None, 0, 3, "") for r in range(N)]


def lost(events, shares):
    number = at(events, "send", 1, 3)
    events[number] = events[number]._replace(label="dropped")


# name -> (change, step, words in the sentence)
PARTS = {
    "wrong bytes": (
        wrong_bytes,
        3,
        "rank 1 sends .*12 B.* to rank 2, and in the ideal",
    ),
    "missing message": (
        missing,
        3,
        "in the ideal rank 1 sends .*to rank 2, and in yours it does not",
    ),
    "extra message": (
        extra,
        3,
        "rank 0 sends 8 B to rank 2, and in the ideal it does not",
    ),
    "other destination": (elsewhere, 3, "(?s)(?=.*rank 1 )(?=.*rank 2)(?=.*rank 3)"),
    "other chunk": (other_chunk, 3, "rank 1 sends chunk 0 .*in the ideal chunk 3"),
    "lost share": (
        held_after(3, 2, 3, (0, 1, 1, 0)),
        3,
        "chunk 3 of rank 2 holds the contributions 1.2, and in the ideal the "
        "contributions 0.1.2.3",
    ),
    "double share": (
        held_after(2, 0, 2, (1, 0, 1, 2)),
        2,
        "chunk 2 of rank 0 holds the contributions 0.2.3.3, and in the ideal the "
        "contributions 0.2.3",
    ),
    "no sum": (held_after(4, 1, 1, None), 4, "chunk 1 of rank 1 holds no whole sum"),
    "nothing": (held_after(5, 1, 0, (0,) * 4), 5, "chunk 0 of rank 1 holds no rank's"),
    "died earlier": (died, 4, "yours goes no further.*[Rr]ank 3 was killed"),
    "goes on longer": (longer, 7, "the ideal has ended here; yours goes on.*2 sends"),
    "a barrier": (meets, 4, "All ranks wait.*The ideal: Every rank r sends"),
    "lost on the way": (lost, 3, "rank 1.*(lost|dropped)"),
}


@pytest.mark.parametrize("name", PARTS)
def test_the_first_difference_is_found_and_named(name):
    change, step, words = PARTS[name]
    found = compare(changed(change), ring_run())
    assert (found.same, found.stop) == (False, step)
    assert re.search(words, found.difference), found.difference
    assert found.verdict.startswith(f"First difference at step {step}")
    assert found.difference in found.verdict and found.verdict in found.alt


@pytest.mark.parametrize("name", PARTS)
def test_a_difference_is_found_from_both_sides_at_the_same_step(name):
    change, step, _ = PARTS[name]
    found = compare(ring_run(), changed(change))
    assert (found.same, found.stop) == (False, step)


@pytest.mark.parametrize("shares", [True, False])
@pytest.mark.parametrize("n", [2, 3, 7])
def test_equal_runs_agree_whatever_their_clocks(n, shares):
    mine, ideal = ring_run(n, shares), ring_run(n, shares)
    slower = [
        e._replace(start=9 + 3 * e.start, end=9 + 3 * e.end) for e in ideal.events
    ]
    found = compare(mine, Trace(n, slower, shares=ideal.shares))
    assert found.same and found.stop == 0 and found.difference == ""
    steps, messages = 2 * (n - 1), 2 * n * (n - 1)
    assert f"agree in all {steps} steps: the same {messages} messages" in found.verdict
    assert ("the same contributions everywhere" in found.verdict) == shares


def test_without_shares_chunks_and_tables_are_not_compared():
    assert compare(changed(other_chunk), ring_run(shares=False)).same
    assert compare(ring_run(shares=False), ring_run()).same
    found = compare(changed(wrong_bytes, shares=False), ring_run(shares=False))
    assert found.stop == 3 and "12 B" in found.difference


def test_nothing_and_nothing_agree():
    assert compare(Trace(2), Trace(2)).same


def test_other_meetings_are_a_difference():
    def meeting(kind, label, ranks=(0, 1, 2)):
        return Trace(3, [Event(r, 0, 1, kind, None, 0, 1, label) for r in ranks])

    meetings = [
        meeting("barrier", ""),
        meeting("collective", "all_reduce"),
        meeting("collective", "broadcast"),
        meeting("barrier", "", (0, 1)),
    ]
    for one, other in itertools.permutations(meetings, 2):
        assert compare(one, other).stop == 1
        assert compare(one, one).same


def test_two_runs_that_break_otherwise_differ():
    def killed(rank):
        waits = Event(0, 0, None, "recv", 1, 8, 1, "")
        return Trace(3, [waits, Event(rank, 0.5, 0.5, "fault", None, 0, 1, "kill")])

    assert compare(killed(1), killed(1)).same
    found = compare(killed(1), killed(2))
    assert found.stop == 1 and "rank 1 was killed" in found.difference.lower()


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_how_many_other_pairs_differ_is_said_in_a_sentence(count):
    def exchange(size):
        events = []
        for src in range(0, 2 * count, 2):
            events.append(Event(src, 0, 1, "send", src + 1, size, 1, ""))
            events.append(Event(src + 1, 0, 1, "recv", src, size, 1, ""))
        return Trace(8, events)

    more = compare(exchange(8), exchange(16)).difference.partition("16 B.")[2].strip()
    assert more in {
        1: {""},
        2: {"The messages of one other pair of ranks differ, too."},
        3: {"The messages of 2 other pairs of ranks differ, too."},
        4: {"The messages of 3 other pairs of ranks differ, too."},
    }.get(count)


def test_the_names_of_the_runs_are_those_in_the_sentence():
    found = compare(ring_run(), Trace(N), names=("ring", "silence"))
    assert "yours" not in found.difference and "ideal" not in found.difference


def test_runs_of_different_worlds_are_refused_with_both_sizes():
    with pytest.raises(InvalidArgument, match="4 and 3 ranks"):
        compare(ring_run(4), ring_run(3))


@pytest.mark.parametrize("thing", [None, 3, "trace"])
def test_what_is_no_run_is_refused(thing):
    with pytest.raises(InvalidArgument, match=type(thing).__name__):
        compare(ring_run(), thing)
