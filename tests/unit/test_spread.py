"""Who has a tensor, and since when, follows from the messages and from nothing else."""

import random

from traces import message

from distlab.grading.rings.spread import Spread
from distlab.trace import Event, Trace


def spread(n, *messages, root=0):
    return Spread.of(Trace(n, [event for pair in messages for event in pair]), root)


def test_who_received_from_one_that_had_it_has_it():
    assert spread(3, message(0, 1, 0, 1), message(1, 2, 1, 2)) == Spread([], [], [])


def test_a_message_that_left_before_its_sender_had_it_brings_nothing():
    late = spread(3, message(1, 2, 0, 1), message(0, 1, 1, 2))
    assert late == Spread(early=[(1, 2)], again=[], never=[2])


def test_a_send_that_began_before_the_receive_was_over_is_too_early():
    overlapping = spread(3, message(0, 1, 0, 2), message(1, 2, 1, 3))
    assert overlapping.early == [(1, 2)]


def test_who_is_sent_it_again_is_named_also_the_root():
    twice = spread(2, message(0, 1, 0, 1), message(1, 0, 1, 2), message(0, 1, 2, 3))
    assert twice == Spread([], [0, 1], [])


def test_it_starts_from_the_root_whichever_that_is():
    assert spread(2, message(1, 0, 0, 1), root=1) == Spread([], [], [])
    assert spread(2, message(1, 0, 0, 1), root=0).early == [(1, 0)]


def test_a_message_that_never_ended_brings_nothing():
    stuck = [
        Event(0, 0, None, "send", 1, 8, 1, ""),
        Event(1, 0, None, "recv", 0, 8, 1, ""),
    ]
    assert spread(2, stuck) == Spread([], [], [1])


def test_a_random_tree_reaches_everybody_once_in_any_order_of_its_events():
    dice = random.Random(9)
    for _ in range(50):
        order = dice.sample(range(12), 12)
        messages = [
            message(dice.choice(order[:k]), order[k], k, k + 1) for k in range(1, 12)
        ]
        dice.shuffle(messages)
        assert spread(12, *messages, root=order[0]) == Spread([], [], [])
        assert spread(12, *messages[1:], root=order[0]).never
