"""Histories whose verdicts are published, or stand in every textbook."""

import pytest

from distlab import History, Operation
from distlab.agree import (
    Register,
    check_causal,
    check_converged,
    check_linearizable,
    check_monotonic_reads,
    check_read_your_writes,
    check_sequential,
)


def write(client, key, value, start, end=None):
    end = start + 1 if end is None else end
    return Operation(client, "write", key, value, start, end, "ok")


def read(client, key, result, start, end=None):
    end = start + 1 if end is None else end
    return Operation(client, "read", key, None, start, end, "ok", result)


def test_the_two_histories_of_porcupines_readme():
    right = [
        write(0, None, 100, 0, 100),
        read(1, None, 100, 25, 75),
        read(2, None, 0, 30, 60),
    ]
    assert check_linearizable(History(right), Register(0)).ok
    wrong = [
        write(0, None, 200, 0, 100),
        read(1, None, 200, 10, 30),
        read(2, None, 0, 40, 90),
    ]
    verdict = check_linearizable(History(wrong), Register(0))
    assert verdict.violated
    assert list(verdict.smallest) == wrong
    assert check_sequential(History(wrong), Register(0)).ok


STALE = [write(0, "x", 1, 0), read(1, "x", 0, 2), read(1, "x", 1, 4)]
# Both write, then both read what the other wrote, and find nothing.
STORE_BUFFERING = [
    write(0, "x", 1, 0),
    write(1, "y", 1, 0),
    read(0, "y", 0, 2),
    read(1, "x", 0, 2),
    read(2, "x", 1, 9),
    read(2, "y", 1, 11),
]
# Two readers see two independent writes in different orders.
LONG_FORK = [
    write(0, "x", 1, 0),
    write(1, "y", 1, 0),
    read(2, "x", 1, 2),
    read(2, "y", 0, 4),
    read(3, "y", 1, 2),
    read(3, "x", 0, 4),
    read(2, "y", 1, 9),
    read(3, "x", 1, 9),
]
# The same with two writes of one key.
IRIW = [
    write(0, "x", 1, 0),
    write(1, "x", 2, 0),
    read(2, "x", 1, 2),
    read(2, "x", 2, 4),
    read(3, "x", 2, 2),
    read(3, "x", 1, 4),
]
MESSAGE_PASSING = [
    write(0, "x", 1, 0),
    write(0, "y", 1, 2),
    read(1, "y", 1, 4),
    read(1, "x", 0, 6),
    read(1, "x", 1, 9),
    read(0, "x", 1, 9),
]
# What somebody knew by reading, and not by writing it, is a cause too.
HEARSAY = [
    write(0, "x", 1, 0),
    read(1, "x", 1, 2),
    write(1, "y", 1, 4),
    read(2, "y", 1, 6),
    read(2, "x", 0, 8),
    read(2, "x", 1, 10),
]
FORGETFUL = [write(0, "x", 1, 0), read(0, "x", 0, 2), read(0, "x", 1, 4)]
BACK_AND_FORTH = [
    write(0, "x", 1, 0),
    write(1, "x", 2, 0),
    read(2, "x", 1, 2),
    read(2, "x", 2, 4),
    read(2, "x", 1, 6),
]
IN_ORDER = [write(0, "x", 1, 0), read(1, "x", 1, 2), write(1, "x", 2, 4)]
IN_ORDER += [read(0, "x", 2, 6)]

# name: linearizable, sequential, causal
KNOWN = {
    "in order": (IN_ORDER, "ok", "ok", "ok"),
    "stale read": (STALE, "violated", "ok", "ok"),
    "store buffering": (STORE_BUFFERING, "violated", "violated", "ok"),
    "long fork": (LONG_FORK, "violated", "violated", "ok"),
    "two orders of one key": (IRIW, "violated", "violated", "ok"),
    "message passing": (MESSAGE_PASSING, "violated", "violated", "violated"),
    "hearsay": (HEARSAY, "violated", "violated", "violated"),
    "own write missed": (FORGETFUL, "violated", "violated", "violated"),
    "back and forth": (BACK_AND_FORTH, "violated", "violated", "violated"),
}


@pytest.mark.parametrize("name", KNOWN)
def test_textbook_histories_have_their_verdicts(name):
    operations, *expected = KNOWN[name]
    history = History(operations)
    found = [
        check_linearizable(history, Register(0)).answer,
        check_sequential(history, Register(0)).answer,
        check_causal(history, initial=0).answer,
    ]
    assert found == expected


def test_session_guarantees_tell_what_a_client_misses():
    assert check_read_your_writes(History(FORGETFUL), initial=0).violated
    assert check_monotonic_reads(History(FORGETFUL), initial=0).ok
    assert check_monotonic_reads(History(BACK_AND_FORTH)).violated
    assert check_monotonic_reads(History(STALE), initial=0).ok


def test_replicas_that_never_agree_have_not_converged():
    apart = [write(0, "x", 1, 0), write(1, "x", 2, 0)]
    apart += [read(0, "x", 1, 20), read(1, "x", 2, 20)]
    assert check_converged(History(apart)).violated
    assert check_causal(History(apart)).ok
    together = [*apart, read(0, "x", 2, 30)]
    assert check_converged(History(together)).ok
    siblings = [*apart, read(0, "x", (1, 2), 30), read(1, "x", [2, 1], 30)]
    assert check_converged(History(siblings)).ok
    assert check_converged(History([*siblings, read(2, "x", [2], 30)])).violated
    strange = [*apart, read(0, "x", 3, 30), read(1, "x", 3, 30)]
    assert "never written" in check_converged(History(strange)).why
    assert check_converged(History(apart), quiet_s=60).inconclusive
    assert check_converged(History(apart[:3])).inconclusive
