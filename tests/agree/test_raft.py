"""Raft in named scenarios: what the paper promises, and what it does not."""

from dataclasses import replace
from functools import partial
from itertools import pairwise

import pytest
import raft as small
from raft_bugs import FAST, AddsEmpty, appends, change, fuzzed, writes

from distlab import Call, InvalidArgument, NodeFailed
from distlab.agree.raft import RaftStore
from distlab.agree.raft.log import RaftLog
from distlab.agree.raft.messages import (
    AppendEntries,
    AppendReply,
    RaftEntry,
    RaftSnapshot,
)
from distlab.agree.raft.monitors import clients_linearizable
from distlab.agree.raft.scenarios import elect, lose, take
from distlab.faults import Crash, Cut, Pause, Split
from distlab.network import (
    Client,
    Cluster,
    Delivery,
    Node,
    Reply,
    Send,
    fuzz,
    simulate,
    step_through,
)

RIGHT = partial(RaftStore, **FAST)


class FirstLeads(RaftStore):
    """Node 0 is always the first to stand for election."""

    def __init__(self, me, peers, **how):
        late = (0.1, 0.2) if me else (0.02, 0.03)
        super().__init__(me, peers, **{"timeout_s": late, "heartbeat_s": 0.01} | how)


def call(op, key=None, value=None, at_s=0.1, node=0, **how):
    return Client(node, [Call(op, key, value)], start_s=at_s, retries=8, **how)


def ok(outcome):
    return [op for op in outcome.history if op.outcome == "ok"]


@pytest.mark.parametrize("nodes", [1, 2, 3, 4, 5, 7])
def test_a_cluster_of_any_size_agrees_and_serves(nodes):
    clients = [writes(0, 5), call("read", "x", at_s=0.5, node=nodes - 1)]
    outcome = simulate(RIGHT, nodes, clients, seed=1)
    assert len(ok(outcome)) == 6 and clients_linearizable(outcome).ok
    assert ok(outcome)[-1].result == 4


@pytest.mark.parametrize("nodes, dead", [(2, 1), (3, 2), (4, 2), (5, 3)])
def test_without_a_majority_nothing_is_answered(nodes, dead):
    faults = [Crash(node, 0.2) for node in range(nodes - dead, nodes)]
    clients = [call("write", "x", 1), call("write", "x", 2, at_s=0.4)]
    clients.append(call("read", "x", at_s=0.4))
    outcome = simulate(FirstLeads, nodes, clients, faults=faults, until_s=9)
    assert [op.value for op in ok(outcome)] == [1]


def test_a_minority_makes_no_progress_until_it_is_healed():
    clients = [call("write", "x", n, 0.35, n, timeout_s=9) for n in (0, 2)]
    faults = Split(0.2, [0, 1], [2, 3, 4], until_s=2.0)
    outcome = simulate(FirstLeads, 5, clients, faults=faults, until_s=4)
    ended = {op.value: op.end for op in ok(outcome)}
    assert ended[2] < 1.0 and 2.0 < ended[0] < 3.0
    assert 0 in {node.data["x"] for node in outcome.nodes if node.role == "leader"}


LOGS = {  # the terms of the entries of the paper's figure 7
    0: "1114455666",
    1: "111445566",
    2: "1114",
    3: "11144556666",
    4: "111445566677",
    5: "1114444",
    6: "11122233333",
}


class Figure7(FirstLeads):
    """A store with one of the six logs."""

    def on_start(self, saved):
        log = [RaftEntry(int(t), i, 0, None) for i, t in enumerate(LOGS[self.me], 1)]
        yield from super().on_start(saved or {"vote": (7, None), "log": log})


def test_the_six_logs_of_figure_7_are_repaired():
    outcome = simulate(Figure7, 7, call("write", "x", 1), seed=3)
    logs = [node.log.entries for node in outcome.nodes]
    assert len(ok(outcome)) == 1 and logs[0][:10] == [
        RaftEntry(int(t), i, 0, None) for i, t in enumerate(LOGS[0], 1)
    ]
    assert all(log == logs[0] for log in logs) and len(logs[0]) == 12


@pytest.mark.parametrize("nodes", [3, 5])
def test_a_command_takes_two_messages_for_each_follower(nodes):
    few, many = (simulate(FirstLeads, nodes, writes(0, count)) for count in (20, 220))
    sent = [
        sum(
            e.kind == "send" and e.rank < nodes and e.peer < nodes
            for e in o.trace.events
        )
        for o in (few, many)
    ]
    assert len(ok(many)) == 220
    assert sent[1] - sent[0] <= 200 * 2 * (nodes - 1)


@pytest.mark.parametrize("seed", range(4))
def test_clients_are_served_soon_after_the_network_heals(seed):
    faults = [Crash(1, 0.1, 0.3), Split(0.15, [0], [1, 2], until_s=0.5)]
    faults += [Cut(0.2, 1, 2, until_s=0.5), Pause(2, 0.25, 0.4)]
    clients = [call("write", "x", n, 0.5, n, timeout_s=9) for n in range(3)]
    how = {"faults": faults, "delivery": Delivery(loss=0.05), "seed": seed}
    outcome = simulate(RIGHT, 3, clients, **how, until_s=2)
    assert len(ok(outcome)) == 3 and max(op.end for op in ok(outcome)) < 0.8


class Storage(Node):
    """A store outside of the cluster; `fenced`: it refuses an older token."""

    def __init__(self, me, peers, fenced):
        super().__init__(me, peers)
        self.fenced, self.token, self.value = fenced, 0, None

    def on_message(self, sender, message):
        if type(message) is tuple and not (self.fenced and message[0] < self.token):
            self.token, self.value = message


class Publisher(FirstLeads):
    """A leader that writes to node 3, with its term as the fencing token."""

    def serve(self, request, call):
        yield Send(3, (self.term, call.value))
        yield from self.propose(request, call)


@pytest.mark.parametrize("fenced, last", [(False, "old"), (True, "new")])
def test_a_paused_leader_that_wakes_overwrites_unless_a_token_fences_it_off(
    fenced, last
):
    def make(me, peers):
        if me == 3:
            return Storage(me, peers, fenced)
        return Publisher(me, peers, members=(0, 1, 2))

    clients = [call("write", "x", "old", 0.201, timeout_s=9)]
    clients.append(call("write", "x", "new", 0.8, node=1, timeout_s=9))
    outcome = simulate(make, 4, clients, faults=Pause(0, 0.2, 1.5), until_s=3)
    assert outcome.nodes[3].value == last


def test_a_node_that_lost_its_disk_breaks_safety_under_its_old_number():
    how = {"splits": 2, "clients": [writes(0, 2)], "until_s": 0.4}
    lost = fuzzed(RaftStore, 6, 100, disk_losses=8, timeout_s=(0.03, 0.3), **how)
    assert "election safety" in lost.why or "leader completeness" in lost.why


def test_a_lost_node_is_replaced_by_a_new_member_that_gets_the_snapshot():
    calls = [Call("remove_member", None, 1), Call("add_member", None, 3)]
    clients = [writes(0, 7), Client(0, calls, start_s=0.5), call("read", "x", at_s=3)]
    make = partial(FirstLeads, members=(0, 1, 2), snapshot_every=3)
    faults = [Crash(1, 0.4, loses="disk"), Crash(2, 2.0)]
    outcome = simulate(make, 4, clients, faults=faults, until_s=4)
    assert [op.result for op in ok(outcome)[-3:]] == [(0, 2), (0, 2, 3), 6]
    assert outcome.nodes[3].data == {"x": 6} and outcome.nodes[3].log.base >= 3


def test_a_second_change_of_members_is_refused_while_one_is_under_way():
    clients = [change(0, "remove", 1), change(1, "remove", 2)]
    clients = [Client(0, client.calls, start_s=0.1) for client in clients]
    outcome = simulate(FirstLeads, 3, clients)
    (refused,) = [op for op in outcome.history if op.outcome == "failed"]
    assert len(ok(outcome)) == 1 and refused.value == 2
    assert outcome.nodes[0].members == (0, 2)


def grown(kind, *clients, **how):
    """Return the outcome of adding node 3 after 1 s, with node 2 dead."""

    class OneByOne(kind):
        most_entries, most_rounds = 1, 3

    clients = [
        writes(0, 250),
        call("add_member", None, 3, at_s=1.0, timeout_s=9),
        *clients,
    ]
    how = {"faults": [Crash(2, 0.5)], "until_s": 9} | how
    make = partial(OneByOne, members=(0, 1, 2), timeout_s=(0.05, 0.1))
    return simulate(lambda *w: make(*w, heartbeat_s=0.01), 4, clients, **how)


def test_writes_go_on_while_a_new_member_gets_a_long_log():
    """Three of four members are alive, so that the vote of the new one is needed."""

    def longest_s(kind):
        ends = [op.end for op in ok(grown(kind)) if op.op == "write"]
        assert len(ends) == 250
        return max(after - before for before, after in pairwise(ends))

    assert 20 * longest_s(RaftStore) < longest_s(AddsEmpty)


def test_a_new_member_that_falls_behind_or_is_silent_is_refused():
    many = [writes(0, 400) for _ in range(3)]
    dead = grown(RaftStore, faults=[Crash(2, 0.5), Crash(3, 0.0)])
    for outcome, why in (
        (grown(RaftStore, *many), "refused: node 3 is behind after 3 round…"),
        (dead, "refused: no reply of node 3 for 0.1 s: …"),
    ):
        assert why in {event.label for event in outcome.trace.events}
        (op,) = [op for op in outcome.history if op.op == "add_member"]
        assert op.end and op.outcome == "failed" and 3 not in outcome.nodes[0].members


def test_a_removed_leader_leaves_once_the_others_can_go_on():
    clients = [call("remove_member", None, 0), call("write", "x", 1, 0.5, node=1)]
    outcome = simulate(FirstLeads, 3, clients)
    assert len(ok(outcome)) == 2 and outcome.nodes[0].role == "follower"


def test_leadership_is_transferred_without_a_time_out():
    clients = [call("transfer", None, 2), call("write", "x", 1, 0.102)]
    outcome = simulate(FirstLeads, 3, clients)
    assert outcome.nodes[2].role == "leader"
    assert (
        max(op.end for op in ok(outcome)) < 0.13
    )  # the shortest time-out is over later


@pytest.mark.parametrize("lease, messages", [(False, 4 * 50), (True, 0)])
def test_a_read_takes_a_round_of_messages_and_none_with_a_lease(lease, messages):
    make = partial(FirstLeads, lease=lease, heartbeat_s=0.015)

    def sent(count):
        clients = [Client(0, [Call("read", "x")] * count, start_s=0.5, retries=8)]
        outcome = simulate(make, 3, clients)
        assert len(ok(outcome)) == count
        return sum(
            e.kind == "send" and max(e.rank, e.peer) < 3 for e in outcome.trace.events
        )

    assert abs(sent(60) - sent(10) - messages) <= messages / 4


def test_a_refusal_of_a_message_of_an_earlier_term_confirms_no_read():
    """Node 0 leads terms 1 and 2, with a crash between; its rounds begin at 0 again."""
    clients = [Client(0, [Call("read", "x")]) for _ in range(3)]
    run = step_through(partial(RaftStore, pre_vote=False), 3, clients)
    lose(elect(run, 0, 1, 2), 0, 1, 2)
    take(run, "node 0 has synced", "client 0", "the timer 'heartbeat' of node 0")
    elect(take(run, "node 0 crashes", "node 0 starts"), 0)
    for node in (1, 2):
        take(run, f"node {node} gets 'RequestVote term=2", f"node {node} has synced")
    take(run, "node 0 gets 'Vote", "node 0 has synced")
    take(run, "node 1 gets 'AppendEntries term=2", "node 0 gets 'AppendReply")
    take(run, "node 1 gets 'AppendEntries term=2", "node 1 has synced")
    take(run, "node 0 gets 'AppendReply", "node 2 gets 'AppendEntries term=1")
    take(run, "node 0 gets 'AppendReply term=2 fits=False", "client 1", "client 2")
    assert run.nodes[0].commit == 2 and not ok(run.outcome())


@pytest.mark.parametrize(
    "terms, kept", [("122", ""), ("124", ""), ("133", "3"), ("134", "4"), ("1", "")]
)
def test_a_crash_between_snapshot_and_log_keeps_the_entries_that_follow(terms, kept):
    """The snapshot ends with index 2 of term 3; the log on disk is older."""
    log = [RaftEntry(int(term), n, 0, None) for n, term in enumerate(terms, 1)]
    snapshot = RaftSnapshot(2, 3, (0, 1, 2))
    for _ in range(2):  # on_start rewrites the log
        log = RaftLog.load({"snapshot": snapshot, "log": log}, (0, 1, 2)).entries
        assert "".join(str(entry.term) for entry in log) == kept


class Heartbeats(FirstLeads):
    """A node that keeps what its timers send to node 2."""

    def on_start(self, saved):
        self.sent = []
        return super().on_start(saved)

    def on_timer(self, name):
        for effect in super().on_timer(name):
            if type(effect) is Send and effect[0] == 2:
                self.sent.append(effect[1])
            yield effect


@pytest.mark.parametrize("snapshot_every", [None, 5])
def test_a_silent_peer_gets_neither_entries_nor_snapshots_until_it_replies(
    snapshot_every,
):
    """Node 1 leads after node 0, and node 2 is dead until the end."""
    make = partial(Heartbeats, snapshot_every=snapshot_every)
    clients = [writes(0, 30), call("transfer", None, 1, 0.7)]
    clients += [call("write", "x", 7, 0.8, node=1), call("read", "x", at_s=2, node=1)]
    outcome = simulate(make, 3, clients, faults=Crash(2, 0.0, 1.9))
    sent = [m for node in outcome.nodes[:2] for m in node.sent if m[0] == node.term]
    assert len(sent) > 90 and not any(getattr(m, "entries", True) for m in sent)
    assert outcome.nodes[2].data == {"x": 7}


def test_a_client_that_asks_again_is_answered_once_more_and_executed_once():
    calls = [Call("append", "x", f"{n}.") for n in range(6)]
    clients = [
        Client(0, calls, timeout_s=0.006, retries=99),
        call("read", "x", at_s=1.5),
    ]
    outcome = simulate(RIGHT, 3, clients, delivery=Delivery(loss=0.2), seed=2)
    assert ok(outcome)[-1].result == "0.1.2.3.4.5." and len(ok(outcome)) == 7


def test_what_a_client_repeats_after_its_session_has_expired_is_refused_by_name():
    clients = [replace(appends(n, 9), timeout_s=0.006, retries=99) for n in range(3)]
    clients.append(call("read", "x", at_s=5))
    faults = [Crash(n % 3, 0.02 + 0.05 * n, 0.06 + 0.05 * n) for n in range(9)]
    make = partial(RIGHT, most_sessions=2, snapshot_every=5)
    outcome = simulate(make, 3, clients, faults=faults)
    labels = {event.label for event in outcome.trace.events}
    assert "refused: client 0's session has expired…" in labels
    assert {op.outcome for op in outcome.history} == {"ok", "unknown"}
    numbers = ok(outcome)[-1].result.rstrip(".").split(".")
    assert sorted(numbers) == sorted("012345678" * 3)
    (one,) = {repr((node.sessions, node.expired_calls)) for node in outcome.nodes}
    assert one.count(":") == 3 and len(outcome.nodes[0].sessions) == 2


def test_a_call_that_makes_no_sense_is_answered_and_stops_no_member():
    bad = [
        ("append", "x", "b"),
        ("cas", "x", 3),
        ("write", [1], 2),
        ("add_member", None, {}),
    ]
    bad += [("transfer", None, 9), ("add_member", None, 7), ("fly", "x", 1)]
    bad += [("add_member", None, None), ("transfer", None, 1.0)]
    clients = [call("write", "x", 1), Client(0, [Call(*each) for each in bad], 0.2)]
    outcome = simulate(FirstLeads, 3, [*clients, call("read", "x", at_s=0.9)])
    results = [op.result for op in ok(outcome)]
    assert results[1].startswith("not done: unsupported operand")
    assert results[2].startswith("not done: cannot unpack") and results[3:] == [1]
    assert sum(op.outcome == "failed" for op in outcome.history) == 7


class Corrupt(RaftStore):
    """A store on whose disk two entries have changed places."""

    def on_start(self, saved):
        log = [RaftEntry(1, 2, 0, None), RaftEntry(1, 1, 0, None)]
        yield from super().on_start({"vote": (1, None), "log": log})


class Impostor(RaftStore):
    """A node that sends entries without having been elected."""

    def on_client(self, request, call):
        for peer in self.peers:
            yield Send(peer, AppendEntries(self.term, 0, 0, (), 0, 0))


class Babbler(RaftStore):
    """A node that sends what is no message of Raft."""

    words = "hello"

    def on_client(self, request, call):
        yield Send(1, self.words)


class Mumbler(Babbler):
    """A node that sends a message of Raft with a word in the place of a number."""

    words = AppendReply(1, True, "two", 3)


class Repeater(RaftStore):
    """A node that answers twice."""

    def on_client(self, request, call):
        yield from [Reply(request), Reply(request)]


@pytest.mark.parametrize(
    "make, words",
    [
        (Corrupt, "has index 2 of term 1 after index 0 of term 0"),
        (Impostor, "election safety: nodes [12] and [01] both lead term 1"),
        (Babbler, "node 0 sent 'hello', not of Raft"),
        (Mumbler, "node 0 sent AppendReply.term=1, fits=True, last='two', round=3., n"),
        (Repeater, "node 0 .Repeater. answered request 1"),
    ],
)
def test_a_corrupt_log_and_a_node_that_breaks_the_protocol_are_named(make, words):
    def some(me, peers):
        return (make if me == 0 else partial(FirstLeads, timeout_s=(0.02, 0.04)))(
            me, peers
        )

    with pytest.raises(NodeFailed, match=words):
        simulate(some, 3, call("write", "x", 1, timeout_s=0.2))


@pytest.mark.parametrize(
    "how, words",
    [
        ({"members": (0, 5)}, "members=.0, 5.: give some of the nodes 0 to 2"),
        ({"members": ()}, "give some of the nodes"),
        ({"timeout_s": (0.03, 0.02)}, "that before the longest"),
        ({"heartbeat_s": 0.3}, "a heartbeat comes before the shortest time-out"),
        ({"snapshot_every": 0}, "snapshot_every=0"),
        ({"most_sessions": 0}, "most_sessions=0: give a number of clients from 1"),
    ],
)
def test_bad_arguments_are_named(how, words):
    with pytest.raises(InvalidArgument, match=words):
        RaftStore(0, (1, 2), **how)


def small_run(kind, runs, seed=1):
    clients = [writes(node, 5) for node in range(3)]
    how = {"crashes": 6, "splits": 2, "cuts": 2, "loss": 0.3, "duplicates": 0.1}
    how |= {"monitors": small.monitors(), "seed": seed, "runs": runs, "within_s": 99}
    return fuzz(kind, 3, clients, **how)


@pytest.mark.parametrize("kind, seed", [(small.VotesTwice, 2), (small.FitsAnywhere, 1)])
def test_the_monitors_find_the_bugs_of_another_raft(kind, seed):
    assert small_run(kind, 400, seed)


def test_the_monitors_have_nothing_against_another_raft_that_is_right():
    assert not small_run(small.Raft, 20)


def test_a_killed_leader_of_real_processes_is_replaced_and_nothing_is_lost():
    with Cluster(RaftStore, 3, delivery=Delivery((0.0, 0.0))) as cluster:
        leader = serving(cluster, range(3), "1")
        cluster.kill(leader, loses="unsynced")
        alive = [node for node in range(3) if node != leader]
        other = serving(cluster, alive, "2")
        cluster.restart(leader)
        serving(cluster, [other, *alive], "3")
        read = cluster.call(other, "read", "x")
        assert read.outcome != "ok" or read.result == "123"
        assert clients_linearizable(cluster.outcome()).ok


def serving(cluster, nodes, letter):
    """Append a letter, through whatever node leads; return that node."""
    for _ in range(3000):
        for node in nodes:
            if cluster.call(node, "append", "x", letter, timeout_s=5).outcome == "ok":
                return node
    raise AssertionError("no node leads")
