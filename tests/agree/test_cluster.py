"""Nodes as real processes: what they say, save and survive."""

import os
import random
import signal
import time
from itertools import pairwise

from clusters import (
    Counting,
    Echo,
    Gossip,
    Majority,
    described,
    patient,
    until,
    writes,
)

from distlab import Call, Crash, Split, network
from distlab.network import Client, Delivery, Node, Note, Reply, Send


def asked(outcome):
    """Return what each client asked and was told, in its own order, without times."""
    described = {}
    for one in outcome.history:
        described.setdefault(one.client, []).append((one.call, one.outcome, one.result))
    return described


def test_a_majority_register_answers_as_in_the_simulator():
    def client():
        for number in range(10):
            yield Call("write", None, number)
            assert (yield Call("read")) == number

    real = network.run(Majority, 3, patient(1, client))
    virtual = network.simulate(Majority, 3, patient(1, client))
    assert asked(real) == asked(virtual)
    assert len(real.history) == 20
    register = ((10, 1), 9)
    assert sum(saved.get("register") == register for saved in real.saved) >= 2
    assert real.nodes[1].value == 9


def test_reads_of_a_majority_register_never_go_back_while_messages_overtake():
    clients = [patient(0, writes(30, None))]
    clients += [patient(node, [Call("read")] * 30) for node in (0, 1, 2)]
    delivery = Delivery((0.0, 0.004), duplicate=0.1)
    outcome = network.run(Majority, 3, clients, delivery=delivery)
    assert {one.outcome for one in outcome.history} == {"ok"}
    seen = [
        (one.start, one.end, one.value if one.op == "write" else one.result)
        for one in outcome.history
        if one.op == "write" or one.result is not None
    ]
    assert len(seen) > 60
    for _, end, value in seen:
        assert all(later >= value for start, _, later in seen if start > end)


def test_an_operation_lasts_at_least_from_the_nodes_hearing_to_its_answer():
    clients = [patient(node, writes(20, None)) for node in range(3)]
    outcome = network.run(Majority, 3, clients)
    calls = {}
    for node in range(3):
        lane = [
            e for e in outcome.trace.events if e.rank == node and e.peer == 3 + node
        ]
        heard = [e.start for e in lane if e.kind == "recv"]
        answered = [e.start for e in lane if e.kind == "send"]
        calls[node] = list(zip(heard, answered, strict=True))
    for client, times in calls.items():
        mine = [one for one in outcome.history if one.client == client]
        assert len(mine) == len(times) == 20
        for one, (heard, answered) in zip(mine, times, strict=True):
            assert one.start <= heard <= answered <= one.end
        for one, after in pairwise(mine):
            assert one.end <= after.start


def test_the_trace_has_each_message_at_both_ends_under_one_number():
    clients = [patient(node, writes(10, None)) for node in range(3)]
    outcome = network.run(Majority, 3, clients)
    trace = outcome.trace
    assert (trace.who, trace.world_size, trace.clients) == ("node", 6, 3)
    sends = {e.step: e for e in trace.events if e.kind == "send"}
    recvs = {e.step: e for e in trace.events if e.kind == "recv"}
    assert sends.keys() == recvs.keys() == set(range(1, len(sends) + 1))
    # Of each write: 2 messages with its client, 2 rounds of 3 asked and 3 told.
    assert len(sends) == 30 * (2 + 2 * 6)
    for number, send in sends.items():
        recv = recvs[number]
        assert (send.rank, send.peer) == (recv.peer, recv.rank)
        assert (send.label, send.bytes) == (recv.label, recv.bytes)
        assert 0 <= send.start <= recv.start <= outcome.elapsed_s
        assert not send.label.startswith("dropped")


def test_what_a_node_prints_and_notes_is_told_with_its_number(capsys):
    class Says(Node):
        def on_client(self, request, call):
            print("I heard", call.op)
            return [Note("all is well"), Reply(request)]

    outcome = network.run(Says, 2, patient(1, [Call("hello")]))
    assert capsys.readouterr().out == "[node 1] I heard hello\n"
    marks = [e for e in outcome.trace.events if e.kind == "mark"]
    assert [(e.rank, e.label) for e in marks] == [(1, "all is well")]


def crossing(events, sides):
    """Return the events of messages between nodes on different sides."""
    side_of = {node: side for side, nodes in enumerate(sides) for node in nodes}
    moved = [e for e in events if e.rank in side_of and e.peer in side_of]
    return [e for e in moved if side_of[e.rank] != side_of[e.peer]]


def test_a_split_separates_counted_at_both_ends():
    sides = [[0, 2], [1]]
    with network.Cluster(Gossip, 3, delivery=Delivery((0.0, 0.02))) as cluster:
        until(lambda: described(cluster, 1).get(0, 0) > 20)
        cluster.split(*sides)
        one, two = (described(cluster, n) for n in (0, 1))
        until(lambda: described(cluster, 0)[2] > one.get(2, 0) + 20)
        assert described(cluster, 0).get(1) == one.get(1)
        assert described(cluster, 1) == two
        cluster.heal()
        until(lambda: described(cluster, 1)[0] > two[0] + 20)
    outcome = cluster.outcome()
    (split,) = [e for e in outcome.trace.events if e.kind == "fault"]
    assert split.label == "partition 0 2 | 1"
    between = crossing(outcome.trace.events, sides)
    during = [e for e in between if split.start <= e.start < split.end]
    assert len(during) > 20
    assert {e.kind for e in during} == {"send"}
    assert all(e.label.startswith("dropped: ") for e in during)
    # Nothing of before arrives after it, either.
    began = {e.step: e.start for e in between if e.kind == "send"}
    late = [e for e in between if e.kind == "recv" and e.start >= split.end]
    assert late and all(began[e.step] >= split.end for e in late)
    counted = {node: sum(outcome.nodes[node].heard.values()) for node in range(3)}
    traced = {
        node: len([e for e in outcome.trace.of(node, "recv") if e.peer < 3])
        for node in range(3)
    }
    assert counted == traced


def test_what_waits_at_a_paused_node_is_lost_in_a_split():
    with network.Cluster(Gossip, 3, delivery=Delivery((0.0, 0.0))) as cluster:
        cluster.pause(1)
        heard = described(cluster, 2).get(0, 0)
        until(lambda: described(cluster, 2).get(0, 0) > heard + 20)
        cluster.split([0, 2], [1])
        cluster.resume(1)
        assert cluster.call(1, "read", timeout_s=20).outcome == "ok"
    events = cluster.outcome().trace.events
    (split,) = [e for e in events if e.kind == "fault"]
    lane = [e for e in events if e.rank == 1 and e.kind == "recv" and e.peer < 3]
    assert not [e for e in lane if e.start >= split.start]
    sent = [e for e in events if e.kind == "send" and e.rank == 0 and e.peer == 1]
    waited = [e for e in sent if e.start < split.start and "dropped" in e.label]
    assert len(waited) > 10


def sent_to_node_1(delivery, count=40):
    """Return what node 1 heard of `count` numbers that node 0 sent it at once."""

    class Sends(Gossip):
        def on_start(self, saved):
            return []

        def on_client(self, request, call):
            sends = [Send(1, ("number", number)) for number in range(count)]
            return [*sends, Reply(request)]

    outcome = network.run(Sends, 2, patient(0, [Call("go")]), delivery=delivery)
    return outcome.nodes[1].order.get(0, []), outcome.trace


def test_messages_are_lost_doubled_overtaken_or_kept_in_order_as_delivery_says():
    spread = (0.0, 0.05)
    everything = list(range(40))
    heard, _ = sent_to_node_1(Delivery(spread))
    assert sorted(heard) == everything != heard
    heard, _ = sent_to_node_1(Delivery(spread, ordered=True))
    assert heard == everything
    heard, _ = sent_to_node_1(Delivery(spread, duplicate=1.0))
    assert sorted(heard) == sorted(everything * 2)
    heard, trace = sent_to_node_1(Delivery(spread, loss=1.0))
    assert heard == []
    lost = [e for e in trace.events if e.kind == "send" and e.peer == 1]
    assert len(lost) == 40 and all(e.label.startswith("dropped: ") for e in lost)
    again = [sent_to_node_1(Delivery((0.0, 0.001), loss=0.5))[0] for _ in range(2)]
    assert sorted(again[0]) == sorted(again[1])  # drawn from the seed, link by link
    assert 5 < len(again[0]) < 35


def test_a_killed_node_has_what_it_saved_and_nothing_else():
    with network.Cluster(Counting, 2) as cluster:
        for number in range(1, 4):
            assert described(cluster, 1, "add") == number
        cluster.kill(1)
        assert cluster.states == ["running", "killed"]
        assert cluster.call(1, "add", timeout_s=0.1).outcome == "unknown"
        assert described(cluster, 0, "add") == 1
        assert cluster.outcome().nodes[1] is None
        assert cluster.outcome().saved == [{"count": 1}, {"count": 3}]
        cluster.restart(1)
        assert described(cluster, 1) == (3, 1)
    faults = [e for e in cluster.outcome().trace.events if e.kind == "fault"]
    assert [(e.rank, e.label) for e in faults] == [(1, "crash"), (1, "restart")]


def test_what_was_acknowledged_survives_kills_at_random_moments():
    def adding():
        while True:
            yield Call("add")

    draw = random.Random(7)
    with network.Cluster(Counting, 1) as cluster:
        for _ in range(6):
            enough = len(cluster.history) + draw.randrange(3, 20)
            cluster.start(Client(0, adding, timeout_s=30))
            until(lambda n=enough: len(cluster.history) > n)
            cluster.kill(0)
            cluster.stop_clients()
            cluster.restart(0)
            results = [one.result for one in cluster.history if one.op == "add"]
            highest = max(filter(None, results))
            kept = described(cluster, 0)[0]
            assert highest <= kept <= len(results)
    assert highest > 10


def test_a_kill_from_outside_is_a_crash_and_the_rest_goes_on():
    with network.Cluster(Counting, 2) as cluster:
        described(cluster, 0, "add")
        os.kill(cluster.pids[0], signal.SIGKILL)
        until(lambda: cluster.states[0] == "killed")
        assert described(cluster, 1, "add") == 1
        cluster.restart(0)
        assert described(cluster, 0, "add") == 2


def test_a_paused_node_is_silent_and_then_answers_all_that_came_meanwhile():
    with network.Cluster(Gossip, 2) as cluster:
        cluster.pause(1)
        assert cluster.call(1, "read", timeout_s=0.1).outcome == "unknown"
        heard = -1
        while heard != (now := described(cluster, 0).get(1, 0)):  # what was under way
            heard = now
            time.sleep(0.1)
        assert cluster.outcome().nodes[1] is None
        cluster.resume(1)
        until(lambda: described(cluster, 0).get(1, 0) > heard + 10)
        until(lambda: described(cluster, 1).get(0, 0) > 10)
    assert cluster.outcome().nodes[1] is not None


def test_planned_faults_strike_by_the_clock_of_the_nodes():
    faults = [
        Split(0.1, [0], [1, 2], until_s=0.3),
        Crash(2, 0.35, until_s=0.5),
        Crash(1, 0.45),
    ]
    clients = [
        Client(node, [Call("read")] * 40, pause_s=0.02, timeout_s=timeout_s)
        for node, timeout_s in ((0, 30.0), (2, 0.1))
    ]
    outcome = network.run(Gossip, 3, clients, faults=faults)
    faults = {e.label: e for e in outcome.trace.events if e.kind == "fault"}
    assert faults.keys() == {"partition 0 | 1 2", "crash", "restart"}
    split = faults["partition 0 | 1 2"]
    assert 0.1 <= split.start < split.end and split.end >= 0.3
    assert faults["restart"].rank == 2 and faults["restart"].start >= 0.5
    assert [node is None for node in outcome.nodes] == [False, True, False]
    during = [e for e in outcome.trace.events if split.start <= e.start < split.end]
    between = crossing(during, [[0], [1, 2]])
    assert between and {e.kind for e in between} == {"send"}
    assert "unknown" in {one.outcome for one in outcome.history if one.client == 1}
    assert {one.outcome for one in outcome.history if one.client == 0} == {"ok"}


def test_unanswered_is_unknown_refused_is_failed_and_a_generator_is_told():
    class Picky(Node):
        late = None

        def on_client(self, request, call):
            if call.op == "later":
                self.late = request
                return []
            effects = Echo.on_client(self, request, call)
            return effects if self.late is None else [self.answer_late(), *effects]

        def answer_late(self):
            request, self.late = self.late, None
            return Reply(request, "late")

    heard = []

    def client():
        heard.append((yield Call("write", "x", 5)))
        heard.append((yield Call("no")))
        heard.append((yield Call("later")))
        heard.append((yield Call("write", "x", 6)))

    outcome = network.run(Picky, 1, Client(0, client, timeout_s=0.5))
    assert heard == [5, None, None, 6]
    outcomes = [one.outcome for one in outcome.history]
    assert outcomes == ["ok", "failed", "unknown", "ok"]
    assert [one.end is None for one in outcome.history] == [False, False, True, False]
    labels = [e.label for e in outcome.trace.events if e.rank == 0]
    assert "refused: not today" in labels and "dropped: late" in labels


def test_clients_ask_in_the_background_until_they_are_stopped():
    def endless():
        while True:
            yield Call("write", "x", 1)

    with network.Cluster(Echo, 2) as cluster:
        cluster.start([patient(node, endless, pause_s=0.001) for node in (0, 1)])
        until(lambda: len(cluster.history) > 50)
        cluster.stop_clients()
        until(lambda: not [o for o in cluster.history if o.outcome == "unknown"])
        asked = len(cluster.history)
        assert cluster.call(0, "write", "x", 2).result == 2
        assert len(cluster.history) == asked + 1
        cluster.start(patient(0, writes(3)))
        until(lambda: len(cluster.history) == asked + 4)
        assert {one.client for one in cluster.history} == {0, 1, 2, "you"}
    assert cluster.outcome().trace.clients == 4


def test_a_node_that_messages_itself_for_ever_still_hears_the_others():
    class Alone(Node):
        def on_start(self, saved):
            return [Send(self.me, "on")]

        def on_message(self, sender, message):
            return [Send(self.me, "on")]

        def on_client(self, request, call):
            return [Reply(request, "here")]

    with network.Cluster(Alone, 1) as cluster:
        assert cluster.call(0, "read", timeout_s=20).result == "here"
