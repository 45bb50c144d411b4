"""Messages of nodes are paired by their numbers, whatever becomes of them."""

import json
import random
from collections import Counter

from traces import nodes, sent

from distlab.trace import Event, is_lost, words_of


def described(trace):
    return [
        (
            words_of(m),
            m.recv.start if m.recv else None,
            bool(m.send and is_lost(m.send)),
        )
        for m in trace.messages()
    ]


def test_a_message_that_overtakes_another_meets_its_own_recv():
    trace = nodes(*sent(0, 1, 1, 0, 5, "first"), *sent(0, 1, 2, 1, 2, "second"))
    assert described(trace) == [("first", 5, False), ("second", 2, False)]


def test_a_lost_message_takes_nobody_elses_recv():
    trace = nodes(*sent(0, 1, 1, 0, None, "a"), *sent(0, 1, 2, 1, 2, "b"))
    assert described(trace) == [("a", None, True), ("b", 2, False)]
    assert trace.lost() == 1 and trace.messages_sent(0) == 2


def test_a_doubled_message_was_sent_once_and_arrives_twice():
    again = Event(1, 4, 4, "recv", 0, 0, 1, "a")
    trace = nodes(*sent(0, 1, 1, 0, 1, "a"), again)
    assert described(trace) == [("a", 1, False), ("a", 4, False)]
    assert trace.messages_sent(0) == 1 and trace.bytes_sent(0) == 0


def test_what_was_on_its_way_to_a_killed_node_has_no_recv_and_was_not_lost():
    crash = Event(1, 1, 1, "fault", None, 0, 0, "crash")
    trace = nodes(*sent(0, 1, 1, 0, 2, "a")[:1], crash, *sent(0, 2, 2, 0, 3, "b"))
    assert described(trace) == [("a", None, False), ("b", 3, False)]


def test_numbers_may_repeat_between_other_pairs_of_nodes():
    trace = nodes(*sent(0, 1, 1, 0, 3, "a"), *sent(1, 0, 1, 1, 2, "b"))
    assert described(trace) == [("a", 3, False), ("b", 2, False)]


def test_random_networks_pair_what_was_sent_with_what_arrived():
    for seed in range(200):
        dice, events, arrivals = random.Random(seed), [], Counter()
        for number in range(30):
            src, dst = dice.sample(range(4), 2)
            at = dice.random()
            copies = dice.choice([0, 1, 1, 1, 2])
            events += sent(
                src, dst, number, at, None if not copies else 0.0, f"m{number}"
            )[:1]
            for _ in range(copies):
                when = at + dice.random()
                events.append(
                    Event(dst, when, when, "recv", src, 0, number, f"m{number}")
                )
                arrivals[number, when] += 1
        dice.shuffle(events)
        messages = nodes(*events, size=4).messages()
        found = Counter((m.send.step, m.recv.start) for m in messages if m.recv)
        assert found == arrivals
        assert all(m.send.step == m.recv.step for m in messages if m.recv)
        assert {m.send.step for m in messages} == set(range(30))


def test_rounds_count_the_delays_that_an_answer_takes():
    """A write that waits for two of three: there, and back, however they arrive."""
    events = [*sent(0, 1, 1, 0, 1, "store"), *sent(0, 2, 2, 0, 3, "store")]
    events += [*sent(1, 0, 3, 1, 2, "stored"), *sent(2, 0, 4, 3, 4, "stored")]
    assert nodes(*events).rounds() == 2
    answered = [*events, *sent(0, 3, 5, 4, 4, "ok")]
    assert nodes(*answered, size=4, clients=1).rounds() == 3


def test_nodes_and_clients_are_named(tmp_path):
    trace = nodes(*sent(2, 0, 1, 0, 0, "write x 1"), size=3, clients=1)
    assert [trace.name(rank) for rank in range(3)] == ["node 0", "node 1", "client 0"]
    assert repr(trace) == "Trace of 2 nodes and 1 client: 2 events"
    trace.to_perfetto(tmp_path / "trace.json")
    rows = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    lanes = [row["args"]["name"] for row in rows if row["name"] == "thread_name"]
    assert lanes == ["node 0", "node 1", "client 0"]
    assert "write x 1 to node 0" in [row["name"] for row in rows]
    assert sum(row["name"] == "message" for row in rows) == 2


def test_what_is_left_of_a_trace_still_knows_its_clients():
    mark = [Event(rank, 1, 1, "mark", None, 0, 0, "now") for rank in range(2)]
    assert nodes(*mark, size=2, clients=1).since("now").name(1) == "client 0"
