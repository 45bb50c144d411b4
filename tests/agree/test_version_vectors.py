"""Vectors, dots and hybrid times, against explicit sets of what is known."""

import random

import pytest

from distlab.agree.stores import LastWriterWins
from distlab.agree.version_vectors import (
    DottedValues,
    HybridTime,
    compare_vectors,
    event_clocks,
    increment_vector,
    merge_vectors,
)
from distlab.errors import InvalidArgument
from distlab.faults import Crash
from distlab.network import Client, Delivery, simulate
from distlab.trace import Call

REPLICAS = 3


def named(below, above):
    """Return the relation of two sets, as vectors name it."""
    if below == above:
        return "equal"
    return "before" if below < above else "after" if below > above else "concurrent"


def test_two_vectors_compare_as_the_sets_of_writes_that_they_count():
    chance, seen = random.Random(1), []
    vectors, known = [(0,) * REPLICAS] * REPLICAS, [frozenset()] * REPLICAS
    for number in range(60):
        here, there = chance.choices(range(REPLICAS), k=2)
        if chance.random() < 0.5:
            vectors[here] = increment_vector(vectors[here], here)
            known[here] |= {number}
        else:
            vectors[here] = merge_vectors(vectors[here], vectors[there])
            known[here] |= known[there]
        seen.append((vectors[here], known[here]))
    for a, writes in seen:
        for b, others in seen:
            assert compare_vectors(a, b) == named(writes, others)


def causes(events):
    """Return for every event the set of those that it can depend on, and itself."""
    sends, last, found = {}, {}, []
    for at, event in enumerate(events):
        before = {at}.union(found[last[event.rank]] if event.rank in last else ())
        if event.kind == "recv":
            before |= found[sends[event.step]]
        elif event.kind == "send":
            sends[event.step] = at
        last[event.rank] = at
        found.append(before)
    return found


def test_vector_clocks_order_events_exactly_as_one_can_have_caused_the_other():
    clients = [Client(n, [Call("write", "x", n), Call("read", "x")]) for n in (0, 1)]
    unsteady = Delivery(loss=0.2, duplicate=0.2)
    run = simulate(
        LastWriterWins, 3, clients, faults=Crash(2, 0.002, 0.004), delivery=unsteady
    )
    events = [each for each in run.trace.events if each.kind != "fault"]
    pairs = zip(run.trace.events, event_clocks(run.trace), strict=True)
    clocks = [clock for event, clock in pairs if event.kind != "fault"]
    known = causes(events)
    assert len(events) > 15
    for at, a in enumerate(clocks):
        for other, b in enumerate(clocks):
            assert compare_vectors(a, b) == named(known[at], known[other])


@pytest.mark.parametrize("seed", range(20))
def test_dots_keep_exactly_the_values_that_no_known_write_has_replaced(seed):
    chance = random.Random(seed)
    dotted = [DottedValues.empty(REPLICAS)] * REPLICAS
    writes = [{} for _ in range(REPLICAS)]  # value -> those that its client had read
    read = [(dotted[0].vector, frozenset())]
    for value in range(40):
        here, there = chance.choices(range(REPLICAS), k=2)
        match chance.choice(["read", "write", "write", "merge"]):
            case "read":
                known = frozenset(writes[here]).union(*writes[here].values())
                read.append((dotted[here].vector, known))
            case "write":
                vector, known = chance.choice(read)
                dotted[here] = dotted[here].write(here, value, vector)
                writes[here] = writes[here] | {value: known}
            case "merge":
                dotted[here] = dotted[here].merge(dotted[there])
                writes[here] = writes[here] | writes[there]
        left = set(writes[here]).difference(*writes[here].values())
        assert set(dotted[here].values) == left


def test_of_two_clients_of_one_replica_dots_keep_the_last_write_of_each():
    state = DottedValues.empty(1)
    contexts = [state.vector] * 2
    for number in range(10):
        client = number % 2
        state = state.write(0, number, contexts[client])
        contexts[client] = state.vector  # as the response to its write says
        assert set(state.values) == {number, number - 1} - {-1}


def test_a_hybrid_time_follows_causes_and_stays_below_the_fastest_clock():
    chance, times, highest = random.Random(2), [HybridTime()] * REPLICAS, 0.0
    for step in range(300):
        here, there = chance.choices(range(REPLICAS), k=2)
        clock_s = max(0.0, step + 5 * here - 40 * (chance.random() < 0.1))
        highest, before = max(highest, clock_s), (times[here], times[there])
        if here == there:
            times[here] = times[here].tick(clock_s)
        else:
            times[here] = times[here].receive(times[there], clock_s)
        assert times[here] > max(before)
        assert clock_s <= times[here].physical_s <= highest


def test_a_clock_that_jumps_back_leaves_the_time_and_moves_the_counter():
    assert HybridTime(9.0, 4).tick(2.0) == HybridTime(9.0, 5)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: compare_vectors((1, 0), (1, 0, 0)), r"\(1, 0\), \(1, 0, 0\)"),
        (lambda: compare_vectors((1, -1), (1, 0)), "from 0 on"),
        (lambda: merge_vectors({"a": 1}, (1,)), "'a': 1"),
        (lambda: increment_vector((1, 0), 2), "replica 2 is unknown.*last is 1"),
        (lambda: increment_vector((1, 0), "b"), "replica 'b' is unknown"),
        (lambda: DottedValues.empty(2).write(0, "a", (1,)), r"\(0, 0\), \(1,\)"),
        (lambda: DottedValues.empty(2).merge(DottedValues.empty(3)), "same replicas"),
        (lambda: DottedValues.empty(0), "replicas is a number.*got 0"),
        (lambda: HybridTime().tick(float("nan")), "nan"),
    ],
)
def test_bad_input_is_named(wrong, words):
    with pytest.raises(InvalidArgument, match=words):
        wrong()
