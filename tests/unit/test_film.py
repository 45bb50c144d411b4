"""A film says what its trace says: every message once, in order, to the last byte."""

import itertools
import random
from collections import Counter

import pytest
from traces import barrier, message, point

from distlab.show import player
from distlab.show.player.animation import Animation
from distlab.show.player.data import player_data
from distlab.trace import Event, Trace

STUCK = ("waiting", "awaited")


def random_trace(seed):
    """Return ranks that send, wait, lose, meet, mark, break and never end."""
    dice = random.Random(seed)
    n = dice.randint(2, 9)
    clocks, steps, events = [dice.random() for _ in range(n)], [0] * n, []

    def event(rank, lasts, kind, peer=None, size=0, label=""):
        start, steps[rank] = clocks[rank], steps[rank] + 1
        clocks[rank] += (lasts or 0) + 0.01
        end = None if lasts is None else start + lasts
        events.append(Event(rank, start, end, kind, peer, size, steps[rank], label))

    for number in range(dice.randint(1, 80)):
        src, dst = dice.sample(range(n), 2)
        size, lot = 1000 + number, dice.random()  # a size of its own for each
        if lot < 0.1:
            events.append(point(src, clocks[src], f"phase {number % 3}, {number}"))
        elif lot < 0.15:
            clocks = [max(clocks)] * n
            for rank in range(n):
                event(rank, dice.random(), "barrier")
        elif lot < 0.25:
            event(src, dice.random(), "send", dst, size, "dropped")
            event(dst, dice.random(), "recv", src, size)
        else:
            event(src, dice.random(), "send", dst, size)
            event(dst, dice.random(), "recv", src, size)
    for rank in dice.sample(range(n), dice.randint(0, n - 1)):
        event(rank, None, dice.choice(["send", "recv"]), (rank + 1) % n, 7)
    if dice.random() < 0.3:
        events.append(point(dice.randrange(n), max(clocks), "kill", "fault"))
    return Trace(n, events, cut_s=dice.choice([None, max(clocks) + 1]))


TRACES = {f"random {seed}": random_trace(seed) for seed in range(40)}
TRACES["at one moment"] = Trace(
    4, [e for k in range(50) for e in message(k % 4, (k + 1) % 4, 1.0, 1.0, 900 + k)]
)
TRACES["clocks backwards"] = Trace(
    2, [*message(0, 1, 5, 2), *message(1, 0, 4, 1), barrier(1, 9, -3)]
)
TRACES["taken, and never given back"] = Trace(
    2, [Event(0, 0, None, "send", 1, 50, 1, ""), *message(0, 1, 0, 1)[1:]]
)
TRACES["one rank"] = Trace(1, [point(0, 0, "alone"), barrier(0, 1, 2)])
TRACES["empty"] = Trace(4, [])
TRACES["nobody"] = Trace(0, [])


# ---- counting -------------------------------------------------------------------


@pytest.mark.parametrize("name", TRACES)
def test_bytes_sent_at_the_end_are_those_of_the_trace_and_never_fall(name):
    trace, animation = TRACES[name], Animation(TRACES[name])
    ranks = range(trace.world_size)
    assert animation.frames[-1].sent == [trace.bytes_sent(rank) for rank in ranks]
    for before, after in itertools.pairwise(animation.frames):
        sent = list(before.sent)
        for move in after.moves:
            sent[move.src] += move.sent
        assert after.sent == sent


@pytest.mark.parametrize("name", TRACES)
def test_every_message_is_in_exactly_one_frame_and_those_of_a_round_together(name):
    trace, frames = TRACES[name], Animation(TRACES[name]).frames
    expected = Counter()
    for (send, recv), number in trace.round_of_messages():
        pair = (send.rank, send.peer) if send else (recv.peer, recv.rank)
        size = max(event.bytes for event in (send, recv) if event)
        expected[(number, *pair, size)] += 1
    rounds, found = itertools.count(1), Counter()
    for frame in frames:
        ended = [move for move in frame.moves if move.fate not in STUCK]
        number = next(rounds) if ended else None
        found.update((number, m.src, m.dst, m.bytes) for m in ended)
        assert all(move.count == 1 for move in ended)
    assert found == expected
    waiting = [m for frame in frames for m in frame.moves if m.fate in STUCK]
    never = [m for m in trace.messages() if all(not e or e.end is None for e in m)]
    assert len(waiting) == len(never)
    assert all(frame.broken for frame in frames if {*waiting} & {*frame.moves})


@pytest.mark.parametrize("name", TRACES)
def test_moments_never_go_back_and_stay_within_the_run(name):
    animation = Animation(TRACES[name])
    moments = [frame.at_s for frame in animation.frames]
    assert moments == sorted(moments) and moments[-1] <= animation.end_s
    data = player_data(animation)
    shares = [frame["at"] for frame in data["frames"]]
    assert shares == sorted(shares)
    assert shares[0] >= 0 and shares[-1] <= 1
    for _, begin, _, end, first, last in data["faults"]:
        assert 0 <= begin <= end <= 1 and 0 <= first <= last <= len(shares) - 1
    times = [time for lane in data["lanes"] for ends in lane.values() for time in ends]
    assert all(0 <= time <= 1 for time in times)


# ---- stops ----------------------------------------------------------------------


def test_marks_become_titles_and_rounds_without_have_numbers():
    events = [point(0, 0, "gather, from rank 1"), *message(1, 0, 1, 2)]
    events += [point(0, 3, "send back"), *message(0, 1, 4, 5, step=2)]
    titles = [frame.title for frame in Animation(Trace(2, events)).frames]
    assert titles == ["Start", "Gather, from rank 1", "Send back"]
    unnamed = Animation(Trace(2, message(0, 1, 0, 1) + message(0, 1, 2, 3))).frames
    assert [f.title for f in unnamed] == ["Start", "Round 1 of 2", "Round 2 of 2"]


def test_barriers_and_collectives_are_stops_with_the_ranks_that_met():
    events = [barrier(rank, 0, 1) for rank in range(3)]
    events += [barrier(r, 2, 3, 2, "collective", "all_reduce") for r in (0, 2)]
    frames = Animation(Trace(3, events)).frames
    assert [f.title for f in frames] == ["Start", "Barrier", "All_reduce"]
    assert [f.ranks for f in frames] == [[], [0, 1, 2], [0, 2]]
    assert frames[1].text == "All ranks wait until the last of them is there."
    assert frames[2].text.startswith("Ranks 0, 2 call all_reduce;")


def test_a_barrier_comes_before_what_its_ranks_sent_after_it():
    """Rank 2 is slow to leave; what ranks 0 and 1 do next still comes next."""
    events = [barrier(0, 0, 1), barrier(1, 0, 1), barrier(2, 0.9, 5)]
    events += message(0, 1, 2, 3, step=2)
    titles = [frame.title for frame in Animation(Trace(3, events)).frames]
    assert titles == ["Start", "Barrier", "Round 1 of 1"]


def test_an_empty_trace_has_a_start_that_says_so():
    (frame,) = Animation(Trace(3)).frames
    assert frame.text.startswith("No rank sent a message")
    assert frame.sent == [0, 0, 0]


def test_more_than_two_thousand_stops_are_put_together_and_nothing_is_lost():
    events = []
    for k in range(5001):
        label = "dropped" if k % 5 == 0 else ""
        pair = k // 3 % 3, (k // 3 + 1) % 3
        events += message(*pair, k, k + 0.5, 10 + k, k + 1, label)
    trace = Trace(3, events)
    animation = Animation(trace)
    assert 1000 < len(animation.frames) <= 2002
    moves = [move for frame in animation.frames for move in frame.moves]
    assert sum(move.count for move in moves) == 5001
    assert sum(move.bytes for move in moves) == sum(10 + k for k in range(5001))
    dropped = [move for move in moves if move.fate == "dropped"]
    assert sum(move.count for move in dropped) == 1001
    assert animation.frames[-1].sent == [trace.bytes_sent(rank) for rank in range(3)]
    assert any("neighbours together" in note for note in animation.notes)


def test_messages_lost_in_stops_put_together_are_all_counted_in_words():
    sends = [message(0, 1, k, k + 0.5, 8, k + 1, "dropped")[0] for k in range(6000)]
    frames = Animation(Trace(2, sends)).frames
    lost = sum(int(frame.text.split()[0]) for frame in frames[1:])
    assert lost == 6000


def test_a_thousand_ranks_are_all_there_and_the_panel_says_whom_it_leaves_out():
    events = [e for r in range(1000) for e in message(r, (r + 1) % 1000, 0, 1)]
    animation = Animation(Trace(1000, events))
    assert animation.geometry.shape == "ring" and len(animation.geometry.nodes) == 1000
    assert len(animation.frames[1].moves) == 1000 and len(animation.rows) == 16
    assert "Ranks 15 to 998 are left out." in animation.notes
    assert animation.rows[-1] == 999


def test_a_rank_that_is_not_of_this_world_stops_no_film():
    assert player(Trace(2, [Event(5, 0, 1, "send", 9, 4, 1, "")])).html()
