"""Who can know of whom, and what a check of turns says of a trace made by hand."""

import math
import random
from collections import defaultdict

import pytest
from traces import barrier, event, message, point

from distlab.grading import PreparesAndSpeaks, SpeaksInOrder, SpeaksInRounds
from distlab.grading.probes import MARKS
from distlab.grading.turns.causality import answers, known_when, links
from distlab.launch import Report
from distlab.trace import Trace


def random_messages(draw, world_size):
    """Return (src, left_s, dst, asked_s, there_s), in order between any two ranks.

    No clock has anything to do with another: many messages arrive before they leave.
    """
    numbers = defaultdict(int)
    for _ in range(draw.randrange(12)):
        numbers[tuple(draw.sample(range(world_size), 2))] += 1
    made = []
    for (src, dst), count in numbers.items():
        left = sorted(draw.randrange(20) for _ in range(count))
        asked = sorted(draw.randrange(20) for _ in range(count))
        for start, begin in zip(left, asked, strict=True):
            made.append((src, start, dst, begin, begin + draw.randrange(6)))
    return made


def trace_of(world_size, messages):
    events = []
    for src, left_s, dst, asked_s, there_s in messages:
        events.append(event(src, left_s, left_s + 1, "send", dst))
        events.append(event(dst, asked_s, there_s, "recv", src))
    return Trace(world_size, events)


def naive_known_when(messages, world_size, rank, moment_s):
    """Walk the graph of all moments: along each rank's time, and along messages."""
    moments = {(rank, moment_s)}
    for src, left_s, dst, _, there_s in messages:
        moments |= {(src, left_s), (dst, there_s)}
    reached, todo = set(), [(rank, moment_s)]
    while todo:
        here = todo.pop()
        if here not in reached:
            reached.add(here)
            todo += [m for m in moments if m[0] == here[0] and m[1] >= here[1]]
            todo += [
                (d, there) for s, left, d, _, there in messages if (s, left) == here
            ]
    return [
        min((m[1] for m in reached if m[0] == other), default=math.inf)
        for other in range(world_size)
    ]


@pytest.mark.parametrize("seed", range(100))
def test_what_a_rank_can_know_is_what_a_walk_along_all_messages_finds(seed):
    draw = random.Random(seed)
    world_size = draw.randrange(2, 6)
    messages = random_messages(draw, world_size)
    start = draw.randrange(world_size), draw.randrange(20)
    known = known_when(links(trace_of(world_size, messages)), world_size, *start)
    assert known == naive_known_when(messages, world_size, *start)


@pytest.mark.parametrize("seed", range(30))
def test_setting_one_ranks_clock_changes_nothing_but_its_own_times(seed):
    draw = random.Random(seed)
    messages = random_messages(draw, 4)
    late = 1000.0  # what rank 2's clock is set forward by

    def shifted(rank, at_s):
        return at_s + late if rank == 2 else at_s

    moved = [
        (s, shifted(s, left), d, shifted(d, asked), shifted(d, there))
        for s, left, d, asked, there in messages
    ]
    known = known_when(links(trace_of(4, messages)), 4, 0, 5)
    after = known_when(links(trace_of(4, moved)), 4, 0, 5)
    assert after == [shifted(rank, at_s) for rank, at_s in enumerate(known)]


def test_a_message_that_left_before_or_never_arrived_tells_nothing():
    left_before = message(0, 1, 1.0, 3.0)
    assert known_when(links(Trace(2, left_before)), 2, 0, 2.0) == [2.0, math.inf]
    never_arrived = message(0, 1, 3.0, None)
    assert known_when(links(Trace(2, never_arrived)), 2, 0, 2.0) == [2.0, math.inf]


def test_an_answer_tells_the_sender_that_its_receiver_had_begun():
    trace = Trace(2, [event(0, 1, 5, "send", 1), event(1, 4, 5, "recv", 0)])
    assert known_when(answers(trace), 2, 1, 3.0) == [5.0, 3.0]
    assert known_when(answers(trace), 2, 1, 4.5) == [math.inf, 4.5]
    assert known_when(links(trace), 2, 1, 3.0) == [math.inf, 3.0]


def turn(rank, begin_s, end_s, act="speak"):
    begins, has_ended = (mark.format(act) for mark in MARKS)
    return [point(rank, begin_s, begins), point(rank, end_s, has_ended)]


def judged(check, events, calls=None):
    """Return the verdict of `check` on a run with these events."""
    ranks = range(check.world_size)
    trace = Trace(check.world_size, [*events, *[barrier(r, 0, 0) for r in ranks]])
    results = calls or [
        {
            act: sum(e.label == MARKS[0].format(act) for e in trace.of(rank, "mark"))
            for act in ("prepare", "speak")
        }
        for rank in ranks
    ]
    report = Report(results, trace, [""] * len(ranks), 1.0, "gloo")
    return check._compare(report)


def test_order_is_right_where_a_message_says_so_whatever_the_clocks_say():
    by_message = [*turn(0, 11, 12), event(0, 13, 14, "send", 1)]
    by_message += [event(1, 1, 2, "recv", 0), *turn(1, 3, 4)]  # its clock is behind
    assert judged(SpeaksInOrder(None, 2), by_message) is None


def test_order_by_the_clock_alone_is_wrong():
    verdict = judged(SpeaksInOrder(None, 2), [*turn(0, 1, 2), *turn(1, 8, 9)])
    assert verdict.outcome == "fail"
    assert "← not told of rank 0" in verdict.found
    assert "that is luck" in verdict.hint


def test_what_the_trace_does_not_show_is_inconclusive():
    calls = [{"speak": 1}, {"speak": 1}]
    verdict = judged(SpeaksInOrder(None, 2), turn(0, 1, 2), calls)
    assert verdict.outcome == "inconclusive"
    assert "rank 1 called speak() once" in verdict.found


@pytest.mark.parametrize("side, who", [("send", "Rank 1"), ("recv", "Rank 0")])
def test_a_message_with_one_side_only_asks_for_wait(side, who):
    events = [*turn(0, 1, 2), *message(0, 1, 3, 4), *turn(1, 5, 6)]
    alone = [e for e in events if e.kind in ("mark", side)]
    verdict = judged(SpeaksInOrder(None, 2), alone)
    assert who in verdict.found and "wait()" in verdict.hint


def test_a_barrier_of_the_learner_is_seen_beside_that_of_the_probe():
    events = [*turn(0, 1, 2), *message(0, 1, 3, 4), *turn(1, 5, 6)]
    barriers = [barrier(rank, 7, 8) for rank in range(2)]
    assert judged(SpeaksInOrder(None, 2), events) is None
    found = judged(SpeaksInOrder(None, 2), events + barriers).found
    assert found == "comm.barrier was called."


def test_a_round_may_begin_only_when_the_last_rank_has_spoken_in_the_one_before():
    events = [*turn(0, 1, 2), *message(0, 1, 3, 4), *turn(1, 5, 6), *turn(0, 7, 8)]
    events += [*message(0, 1, 9, 10), *turn(1, 11, 12)]
    verdict = judged(SpeaksInRounds(None, 2, 2), events)
    assert "told rank 0 that rank 1 had spoken in round 1" in verdict.found
    assert "overtakes" in verdict.hint
    told = events + message(1, 0, 6.2, 6.6)
    assert judged(SpeaksInRounds(None, 2, 2), told) is None


def test_preparing_after_another_has_is_seen_from_its_messages():
    spoken = [*turn(0, 5, 6), *message(0, 1, 7, 8), *turn(1, 11, 12)]
    apart = spoken + turn(0, 1, 2, "prepare") + turn(1, 9, 10, "prepare")
    verdict = judged(PreparesAndSpeaks(None, 2), apart)
    assert "← told of rank 0" in verdict.found
    together = spoken + turn(0, 1, 2, "prepare") + turn(1, 3, 4, "prepare")
    assert judged(PreparesAndSpeaks(None, 2), together) is None
