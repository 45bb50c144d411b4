"""Schedules of the stores are searched: planted bugs are found, and no others."""

from functools import partial

import pytest

from distlab.agree import (
    Causal,
    KeyValue,
    LastWriterWins,
    PrimaryCopy,
    Quorum,
    VersionVectors,
    check_causal,
    check_linearizable,
    check_read_your_writes,
)
from distlab.network import Client, search
from distlab.trace import Call


def linearizable(outcome):
    return check_linearizable(outcome.history, KeyValue())


def causal(outcome):
    return check_causal(outcome.history)


def own_writes(outcome):
    return check_read_your_writes(outcome.history)


WRITE, READ = Call("write", "x", 1), Call("read", "x")
ONE_WRITES = [Client(0, [WRITE]), Client(1, [READ]), Client(2, [READ])]
TELL_ON = [
    Client(0, [Call("write", "question", 1)]),
    Client(1, [Call("read", "question"), Call("write", "answer", 2)]),
    Client(2, [Call("read", "answer"), Call("read", "question")]),
]


class ForgetfulQuorum(Quorum):
    """A store without a disk."""

    def on_start(self, saved):
        return super().on_start({})


class RefusingQuorum(Quorum):
    """It tells its client that nothing was done, though it may have been."""

    def on_timer(self, request):
        self.work[request].chosen = None
        return super().on_timer(request)


FOUND = {
    "reads one replica": (
        partial(Quorum, reads=1, write_back=False),
        ONE_WRITES,
        linearizable,
        {},
    ),
    "writes nothing back": (
        partial(Quorum, write_back=False),
        ONE_WRITES,
        linearizable,
        {"timers": 0},
    ),
    "forgets what it said it has": (
        ForgetfulQuorum,
        [Client(0, [WRITE]), Client(2, [READ])],
        linearizable,
        {"crashes": 1},
    ),
    "refuses what it may have done": (
        RefusingQuorum,
        [Client(0, [WRITE]), Client(1, [READ])],
        linearizable,
        {},
    ),
    "reads a backup": (
        partial(PrimaryCopy, read_at="any"),
        ONE_WRITES,
        linearizable,
        {},
    ),
    "reads what is not yet copied": (
        partial(PrimaryCopy, synchronous=False, read_at="any"),
        [Client(1, [WRITE, READ])],
        own_writes,
        {},
    ),
    "tells the answer first": (LastWriterWins, TELL_ON, causal, {}),
    "tells the answer first, too": (VersionVectors, TELL_ON, causal, {}),
}


@pytest.mark.parametrize("name", FOUND)
def test_a_schedule_of_at_most_fifteen_steps_breaks_a_store_that(name):
    make, clients, check, limits = FOUND[name]
    found = search(make, 3, clients, check, within_s=30, **limits)
    assert found, found
    assert len(found.schedule) <= 15
    assert check(found.replay()).violated


NOT_FOUND = {
    "majority": (Quorum, ONE_WRITES, linearizable, {"crashes": 1, "drops": 1}),
    "synchronous": (PrimaryCopy, ONE_WRITES, linearizable, {"duplicates": 1}),
    "causal": (Causal, TELL_ON, causal, {"drops": 1, "crashes": 1}),
}


@pytest.mark.parametrize("name", NOT_FOUND)
def test_nothing_is_found_in_a_store_that_is_right(name):
    make, clients, check, limits = NOT_FOUND[name]
    explored = search(make, 3, clients, check, within_s=0.5, **limits)
    assert not explored, explored
