"""Happened-before, held to a walk along all messages; answers without a variant."""

import random
import re

import pytest
from traces import event, message

from distlab.checks import start_here as checks
from distlab.checks.kit.grading import judge
from distlab.trace import Trace


def reached(messages, rank, at):
    """Return all moments after one: along each rank's time, and along messages."""
    found, todo = set(), [(rank, at)]
    while todo:
        rank, at = todo.pop()
        for src, dst, left, there in messages:
            if src == rank and left >= at and (dst, there) not in found:
                found.add((dst, there))
                todo.append((dst, there))
    return found


@pytest.mark.parametrize("seed", range(60))
def test_what_happened_before_is_what_a_walk_along_all_messages_reaches(seed):
    draw, messages = random.Random(seed), []
    for _ in range(draw.randrange(14)):
        left, pair = draw.randrange(20), draw.sample(range(4), 2)
        messages.append((*pair, left, left + draw.randrange(1, 6)))
    messages = [m for m in messages if [m[:2] for m in messages].count(m[:2]) == 1]
    trace = Trace(4, [e for m in messages for e in message(*m)])
    for rank, start in enumerate(draw.choices(range(20), k=3), 1):
        last, turn = event(0, 0, 4, "work"), event(rank, start, start, "work")
        known = any(r == rank and t <= start for r, t in reached(messages, 0, 4))
        assert checks.happened_before(trace, last, turn) == known


def in_order(comm, speak):
    if comm.rank > 0:
        comm.recv_object(comm.rank - 1)
    speak()
    if comm.rank < comm.world_size - 1:
        comm.send_object("your turn", comm.rank + 1)


def waits_in_its_own_send(comm, speak):
    if comm.rank > 0:
        comm.send_object("may I?", comm.rank - 1)
    speak()
    if comm.rank < comm.world_size - 1:
        comm.recv_object(comm.rank + 1)


@pytest.mark.parametrize(
    "answer, hint",
    [
        (lambda c, speak: (in_order(c, list), speak()), "then speak, then send"),
        (waits_in_its_own_send, "What does the sender of that message know"),
        (lambda c, speak: in_order(c, lambda: speak), "How often does"),
    ],
)
def test_a_mistake_meets_the_hint_that_fits(answer, hint):
    verdict = judge(checks.speak_in_order, answer, (3,))
    assert verdict.outcome == "fail" and hint in verdict.hints[0], verdict


def test_a_verdict_shows_the_turns_and_which_began_too_early():
    def overtaking(comm, speak, rounds):
        for _ in range(rounds):
            in_order(comm, speak)

    verdict = judge(checks.speak_in_rounds, overtaking, (2, 2))
    assert re.sub(" +[0-9]+ ms", " _", verdict.found).splitlines()[1:-1] == [
        "    1     0 _ _",
        "    1     1 _ _",
        "    2     0 _ _  ← too early",
        "    2     1 _ _",
    ]
