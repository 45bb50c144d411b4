"""Nodes on a virtual clock: the same every time, and each fault does what it says."""

import random
import sys
from collections import Counter

import pytest
from protocols import Echo, Gossip, Majority

from distlab import (
    Call,
    Crash,
    InvalidArgument,
    NodeFailed,
    NotDeterministic,
    Split,
)
from distlab.faults import ClockDrift, ClockJump, Cut, Pause
from distlab.network import (
    Append,
    CancelTimer,
    Client,
    Delivery,
    Node,
    Note,
    Refuse,
    Reply,
    Save,
    Send,
    SetTimer,
    Sync,
    Truncate,
    session_of,
    simulate,
)

WRITES = [Call("write", "x", n) for n in range(10)]
READS = [Call("read", "x")] * 10
CLIENTS = [Client(0, WRITES, pause_s=0.01), Client(1, READS, pause_s=0.01)]


class Sends(Node):
    """Sends `value` numbers to node 1, which notes when each comes."""

    def __init__(self, me, peers):
        super().__init__(me, peers)
        self.got = []

    def on_client(self, request, call):
        return [*[Send(1, n) for n in range(call.value)], Reply(request)]

    def on_message(self, sender, message):
        self.got.append(message)


def sent(count, **delivery):
    clients = [Client(0, [Call("send", None, count)])]
    outcome = simulate(Sends, 2, clients, delivery=Delivery(**delivery), seed=3)
    return outcome.nodes[1].got, outcome.trace


def test_the_same_seed_gives_the_same_trace_and_another_seed_another():
    delivery = Delivery(loss=0.1, duplicate=0.1)
    faults = [Split(0.02, [0], [1, 2], until_s=0.5), Crash(2, 0.6, until_s=0.7)]

    def outcome(seed):
        return simulate(
            Majority, 3, CLIENTS, delivery=delivery, faults=faults, seed=seed
        )

    one, again, other = outcome(1), outcome(1), outcome(2)
    assert one.trace.events == again.trace.events
    assert list(one.history) == list(again.history)
    assert one.trace.events != other.trace.events


def test_loss_and_duplicates_are_the_shares_that_were_asked_for():
    got, trace = sent(10_000, loss=0.2)
    assert 7_800 < len(got) < 8_200 and len(set(got)) == len(got)
    lost = [event for event in trace.events if event.label.startswith("dropped: ")]
    assert len(lost) == 10_000 - len(got)
    got, _ = sent(10_000, duplicate=0.3)
    assert 12_700 < len(got) < 13_300 and set(got) == set(range(10_000))
    assert max(Counter(got).values()) == 2
    got, _ = sent(100, loss=1.0)
    assert got == []


def test_messages_overtake_each_other_unless_they_are_ordered():
    got, _ = sent(500, duplicate=0.1)
    assert got != sorted(got)
    got, _ = sent(500, duplicate=0.1, ordered=True)
    assert got == sorted(got)


def test_delays_are_between_the_shortest_and_the_longest_all_equally_likely():
    _, trace = sent(5_000, delay_s=(0.2, 0.4))
    sends = {e.step: e.start for e in trace.of(0, "send")}
    delays = [e.start - sends[e.step] for e in trace.of(1, "recv")]
    assert min(delays) >= 0.2 and max(delays) <= 0.4
    for edge in (0.25, 0.3, 0.35):
        share = sum(delay < edge for delay in delays) / len(delays)
        assert abs(share - (edge - 0.2) / 0.2) < 0.03


def test_message_numbers_are_the_same_at_both_ends_and_the_words_are_short():
    outcome = simulate(Majority, 3, CLIENTS, delivery=Delivery(duplicate=0.5))
    sends = {e.step: e for e in outcome.trace.events if e.kind == "send"}
    assert len(sends) == sum(e.kind == "send" for e in outcome.trace.events)
    recvs = [e for e in outcome.trace.events if e.kind == "recv"]
    for recv in recvs:
        send = sends[recv.step]
        assert (send.rank, send.peer) == (recv.peer, recv.rank)
        assert send.label == recv.label and send.start <= recv.start
        assert len(recv.label) <= 40
    labels = {e.label for e in outcome.trace.of(4, "send")}
    assert labels == {"read x"}
    assert outcome.trace.clients == 2 and outcome.trace.world_size == 5


class Chatter(Node):
    """Every node tells every other, again and again."""

    def on_start(self, saved):
        return [SetTimer("chat", 0.001)]

    def on_timer(self, name):
        return [*[Send(peer, "chat") for peer in self.peers], SetTimer(name, 0.001)]


def test_nothing_crosses_a_split_not_even_what_is_under_way():
    split = Split(0.1, [0, 1], [2, 3], until_s=0.2)
    outcome = simulate(Chatter, 5, faults=[split], until_s=0.3)
    side = {0: 0, 1: 0, 2: 1, 3: 1, 4: 2}  # node 4 is on none: it is alone
    within = crossed = 0
    for event in outcome.trace.events:
        if event.kind == "recv":
            crosses = side[event.rank] != side[event.peer]
            if 0.1 <= event.start < 0.2:
                assert not crosses
                within += 1
            crossed += crosses
    assert within > 300 and crossed > 1000
    lost = [e for e in outcome.trace.events if e.label == "dropped: chat"]
    assert all(0.097 <= e.start < 0.2 for e in lost)
    assert any(e.start < 0.1 for e in lost)  # these were under way
    (fault,) = [e for e in outcome.trace.events if e.kind == "fault"]
    assert (fault.label, fault.start, fault.end) == ("partition 0 1 | 2 3", 0.1, 0.2)


class Remembers(Node):
    """Saves what is written, keeps what is put, and counts its own lives."""

    def on_start(self, saved):
        self.saved, self.put = dict(saved), None
        return [Save("lives", saved.get("lives", 0) + 1), SetTimer("tick", 0.05)]

    def on_client(self, request, call):
        if call.op == "read":
            return [Reply(request, (self.saved.get("x"), self.put))]
        self.put = call.value
        if call.op == "write":
            self.saved["x"] = call.value
            return [Save("x", call.value), Reply(request)]
        return [Reply(request)]

    def on_timer(self, name):
        return [Note("tick")]


def test_a_crash_forgets_all_but_what_was_saved():
    calls = [Call("write", "x", 1), Call("put", "x", 2), Call("read", "x")]
    clients = [
        Client(0, calls),
        Client(0, [Call("read", "x")], start_s=0.03, timeout_s=0.01),
        Client(0, [Call("read", "x")], start_s=0.2),
    ]
    crash = Crash(0, 0.02, until_s=0.1)
    outcome = simulate(Remembers, 1, clients, faults=[crash])
    results = {op.client: op for op in outcome.history if op.op == "read"}
    assert results[0].result == (1, 2)
    assert results[1].outcome == "unknown" and results[1].end is None
    assert results[2].result == (1, None)
    assert outcome.saved == [{"lives": 2, "x": 1}]
    labels = [e.label for e in outcome.trace.events if e.kind in ("fault", "mark")]
    # The timer that was set before the crash is forgotten; its successor runs out.
    assert labels == ["crash", "restart", "timer tick", "tick"]


def test_messages_to_a_dead_node_are_lost_also_those_under_way():
    faults = [Crash(1, 0.05, until_s=0.0505)]
    delivery = Delivery(delay_s=(0.01, 0.01))
    outcome = simulate(Chatter, 2, faults=faults, delivery=delivery, until_s=0.1)
    got = {e.step for e in outcome.trace.of(1, "recv")}
    for send in outcome.trace.of(0, "send"):
        through = send.start + 0.01 < 0.05 or send.start > 0.0505
        arrived = send.start + 0.01 <= 0.1
        assert (send.step in got) == (through and arrived)
        assert send.label == ("chat" if through else "dropped: chat")


class Journal(Node):
    """Appends, cuts and syncs as its calls say; what it finds at a start it notes."""

    def on_start(self, saved):
        self.found = saved.get("log", [])
        return [Note(f"found {self.found}")] if saved else None

    def on_client(self, request, call):
        effect = {"add": Append, "cut": Truncate, "sync": Sync}[call.op]
        given = [effect("log", call.value)] if call.op != "sync" else [Sync(request)]
        return [*given, *([Reply(request)] if call.op != "sync" else [])]

    def on_synced(self, request):
        return [Reply(request)]


@pytest.mark.parametrize(
    "loses, left",
    [("", [1, 2, 4]), ("unsynced", [1, 2, 3]), ("last write", [1, 2]), ("disk", [])],
)
def test_a_crash_takes_from_the_disk_what_it_says(loses, left):
    calls = [Call("add", None, n) for n in (1, 2, 3)]
    calls += [Call("sync"), Call("cut", None, 2), Call("add", None, 4)]
    late = Client(0, [Call("add", None, 5)], start_s=0.9)
    crash = Crash(0, 0.5, until_s=0.6, loses=loses)
    outcome = simulate(Journal, 1, [Client(0, calls), late], faults=[crash])
    assert outcome.nodes[0].found == left
    assert outcome.saved[0]["log"] == [*left, 5]
    ends = [op.end - op.start for op in outcome.history if op.op == "sync"]
    assert ends == pytest.approx([0.001])


def test_a_sync_under_way_at_a_crash_ends_never_and_its_writes_are_lost():
    client = Client(0, [Call("add", None, 1), Call("sync")], timeout_s=0.5)
    crash = Crash(0, 0.05, until_s=0.1, loses="unsynced")
    late = Client(0, [Call("add", None, 2)], start_s=0.9)
    outcome = simulate(Journal, 1, [client, late], faults=crash, sync_s=0.1)
    assert [op.outcome for op in outcome.history] == ["ok", "unknown", "ok"]
    assert outcome.saved == [{"log": [2]}]


class Clock(Node):
    """Notes what its clock reads, a tenth of a second of its own after it started."""

    def on_start(self, saved):
        return [SetTimer("tick", 0.1)]

    def on_timer(self, name):
        return [Note(f"{self.clock_s:.3f}"), SetTimer("tick", 0.1)]


def test_a_clock_drifts_with_its_timers_and_jumps_without_them():
    faults = [ClockDrift(1, 2.0), ClockJump(2, 0.15, -3600.0)]
    outcome = simulate(Clock, 3, faults=faults, until_s=0.25)
    marks = [(e.rank, round(e.start, 3), e.label) for e in outcome.trace.events]
    notes = [mark for mark in marks if mark[2][-1].isdigit()]
    assert sorted(notes) == [
        *[(0, at, f"{at:.3f}") for at in (0.1, 0.2)],
        *[(1, at, f"{2 * at:.3f}") for at in (0.05, 0.1, 0.15, 0.2, 0.25)],
        *[(2, 0.1, "0.100"), (2, 0.2, "-3599.800")],
    ]
    assert (2, 0.15, "clock jumps -3600 s") in marks


def test_a_cut_link_drops_one_direction_only():
    cut = Cut(0.1, 0, 1, until_s=0.2)
    outcome = simulate(Chatter, 2, faults=cut, until_s=0.3)
    got = {n: [e.start for e in outcome.trace.of(n, "recv")] for n in (0, 1)}
    assert not any(0.1 <= at < 0.2 for at in got[1])
    assert sum(0.1 <= at < 0.2 for at in got[0]) > 80
    assert min(len(got[0]), len(got[1])) > 150


def test_a_paused_node_does_nothing_and_then_all_that_waited():
    pause = Pause(1, 0.05, 0.1)
    asks = Client(1, [Call("send", None, 0)], start_s=0.06)
    trace = simulate(Chatter, 2, faults=pause, until_s=0.15).trace
    starts = [e.start for e in trace.of(1) if e.label not in ("paused", "resumed")]
    assert not any(0.05 <= start < 0.1 for start in starts)
    assert sum(start == 0.1 for start in starts) > 40
    (operation,) = simulate(Sends, 2, asks, faults=pause).history
    assert (operation.start, operation.end) == (0.06, 0.1)


def test_a_client_asks_where_it_is_sent_or_elsewhere_with_the_same_request():
    requests = []

    class Leads(Node):
        def on_client(self, request, call):
            requests.append((self.me, request, session_of(request)))
            if self.me == 0:
                return [Refuse(request, to=2)]
            return [Reply(request)] if self.me == 3 else None

    calls = [Call("write", "x", n) for n in (1, 2)]
    client = Client(0, calls, timeout_s=0.1, retries=2)
    other = Client(3, calls)
    outcome = simulate(Leads, 4, [other, client])
    first, second = (1_000_001, (1, 1)), (1_000_002, (1, 2))
    asked = [(node, *rest) for node, *rest in requests if rest[1][0] == 1]
    assert asked == [(0, *first), (2, *first), (3, *first), (3, *second)]
    theirs = [op for op in outcome.history if op.client == 1]
    assert [op.outcome for op in theirs] == ["ok", "ok"]
    assert theirs[0].end - theirs[0].start == pytest.approx(0.1)
    refused = simulate(Leads, 4, Client(0, calls[:1], retries=0)).history
    assert [op.outcome for op in refused] == ["failed"]
    client = Client(1, calls[:1], timeout_s=0.1, retries=1)
    (lost,) = simulate(Leads, 4, client).history
    assert (lost.outcome, lost.end) == ("unknown", None)


def test_a_delay_may_have_any_distribution():
    class Fixed:
        def draw(self, random):
            return random.choice([0.1, 0.3])

    _, trace = sent(400, delay_s=Fixed())
    sends = {e.step: e.start for e in trace.of(0, "send")}
    delays = [round(e.start - sends[e.step], 6) for e in trace.of(1, "recv")]
    assert set(delays) == {0.1, 0.3} and 150 < delays.count(0.1) < 250


def test_ten_thousand_nodes_take_no_memory_for_each_pair():
    outcome = simulate(Chatter, 10_000, until_s=0.0)
    last = outcome.nodes[9_999].peers
    assert len(last) == 9_999 and last[0] == 0 and last[-1] == 9_998
    assert sys.getsizeof(last) < 100 and 9_999 not in last and 3 in last


class Timers(Node):
    """Sets timers as its call says: (name, seconds) sets, a name alone cancels."""

    def on_client(self, request, call):
        for item in call.value:
            yield SetTimer(*item) if isinstance(item, tuple) else CancelTimer(item)
        yield Reply(request)

    def on_timer(self, name):
        return [Note(f"{name} has run out")]


@pytest.mark.parametrize(
    "orders, expected",
    [
        ([("a", 0.1), ("b", 0.05)], [(0.05, "b"), (0.1, "a")]),
        ([("a", 0.1), ("a", 0.2)], [(0.2, "a")]),
        ([("a", 0.2), ("a", 0.1)], [(0.1, "a")]),
        ([("a", 0.1), ("b", 0.1), "a"], [(0.1, "b")]),
        (["a", ("a", 0)], [(0.0, "a")]),
        ([(("a", 1), 0.1), (("a", 2), 0.1)], [(0.1, ("a", 1)), (0.1, ("a", 2))]),
    ],
)
def test_a_timer_runs_out_once_and_can_be_replaced_and_cancelled(orders, expected):
    clients = [Client(0, [Call("set", None, orders)]), Client(0, [], start_s=1.0)]
    trace = simulate(Timers, 1, clients).trace
    ended = [(e.start, e.label) for e in trace.events if e.label.endswith(" out")]
    assert ended == [(when, f"{name} has run out") for when, name in expected]


def test_clients_time_out_are_refused_and_go_on():
    class Moody(Node):
        def on_client(self, request, call):
            if call.value == 1:
                return [Refuse(request, "not today")]
            if call.value == 2:
                return [SetTimer(request, 0.3)]
            return [Reply(request, call.value)]

        def on_timer(self, request):
            return [Reply(request, "too late")]

    described = []

    def asks():
        for value in (1, 2, 3):
            described.append((yield Call("put", "x", value)))

    client = Client(0, asks(), start_s=0.5, pause_s=0.2, timeout_s=0.25)
    outcome = simulate(Moody, 1, [client])
    assert [op.outcome for op in outcome.history] == ["failed", "unknown", "ok"]
    assert described == [None, None, 3]
    starts = [op.start for op in outcome.history]
    assert starts == pytest.approx([0.5, 0.7, 1.15])
    labels = [e.label for e in outcome.trace.of(0, "send")]
    assert labels == ["refused: not today", "dropped: 'too late'", "3"]


def test_a_run_ends_when_its_clients_are_done_or_its_time_is_over():
    idle = simulate(Chatter, 2, [Client(0, [], start_s=0.1)], until_s=5.0)
    assert idle.elapsed_s == 0.1  # what timers have sent is still under way
    got, trace = sent(100, delay_s=(0.1, 0.5))
    assert len(got) == 100 and max(e.start for e in trace.events) > 0.4
    assert simulate(Chatter, 2, until_s=0.5).elapsed_s == 0.5
    silent = simulate(Node, 2, [Client(0, READS, timeout_s=1.0)], until_s=3.5)
    assert [op.outcome for op in silent.history] == ["unknown"] * 4
    assert silent.elapsed_s == 3.5


def test_a_partition_that_outlasts_the_run_ends_with_it():
    clients = [Client(0, [Call("write", "x", 1)], timeout_s=0.3)]
    outcome = simulate(Majority, 3, clients, faults=Split(0, [0]))
    (fault,) = [e for e in outcome.trace.events if e.kind == "fault"]
    assert (fault.start, fault.end) == (0.0, outcome.elapsed_s)
    assert [op.outcome for op in outcome.history] == ["unknown"]


def test_two_equal_partitions_that_overlap_end_one_after_the_other():
    splits = [Split(at_s, [0], [1], until_s=at_s + 0.2) for at_s in (0.1, 0.2)]
    trace = simulate(Chatter, 2, faults=splits, until_s=1.0).trace
    lasting = [(e.start, e.end) for e in trace.events if e.kind == "fault"]
    assert lasting == [(0.1, pytest.approx(0.3)), (0.2, pytest.approx(0.4))]


def test_a_naive_clock_gives_the_same_results_for_random_programs():
    """A twin of a dozen lines: it looks through all that is to come for the earliest.

    Nodes pass tokens on by a fixed table, with fixed delays, so nothing is left to
    chance. What every node got, and in which order, must be the same.
    """
    for seed in range(30):
        chance = random.Random(seed)
        size = chance.randint(2, 5)
        table = [[chance.randrange(size) for _ in range(3)] for _ in range(size)]

        class Passes(Node):
            def __init__(self, me, peers):
                super().__init__(me, peers)
                self.got = []

            def on_start(self, saved):
                return self.passed(0)

            def on_message(self, sender, message):
                self.got.append((sender, message))
                return self.passed(message) if message < 6 else None

            def passed(self, count):
                to = self.table[self.me][count % 3]
                return [SetTimer((to, count + 1), 0.001 * (1 + self.me))]

            def on_timer(self, name):
                return [Send(*name)] if name[0] != self.me else None

        Passes.table = table
        outcome = simulate(Passes, size, delivery=Delivery(delay_s=(0.01, 0.01)))
        assert [node.got for node in outcome.nodes] == naive(table, size)


def naive(table, size):
    coming = [(0.001 * (1 + n), n, "timer", table[n][0], 1) for n in range(size)]
    order = {entry: at for at, entry in enumerate(coming)}
    got = [[] for _ in range(size)]
    while coming:
        entry = min(coming, key=lambda entry: (entry[0], order[entry]))
        coming.remove(entry)
        when, node, what, to, count = entry
        if what == "timer" and to != node:
            new = (when + 0.01, to, "message", node, count)
        elif what == "message":
            got[node].append((to, count))
            new = None
            if count < 6:
                after = when + 0.001 * (1 + node)
                new = (after, node, "timer", table[node][count % 3], count + 1)
        else:
            new = None
        if new:
            # Setting a timer replaces the one of the same name.
            coming = [c for c in coming if c[2] == "message" or c[1:] != new[1:]]
            order[new] = len(order)
            coming.append(new)
    return got


def test_a_node_with_a_chance_of_its_own_is_found_out():
    class Dice(Node):
        def on_client(self, request, call):
            return [Send(1, ("roll", random.random())), Reply(request)]

    with pytest.raises(NotDeterministic) as caught:
        simulate(Dice, 2, [Client(0, WRITES, start_s=0.25)], twice=True)
    error = caught.value
    assert (error.node, error.at_s) == (0, 0.25)
    assert error.first != error.second and "'roll', 0." in error.first
    assert "node 0 (Dice) is not deterministic" in str(error)
    simulate(Gossip, 5, until_s=0.05, twice=True)  # self.random is the same again


def test_a_node_that_shares_with_its_class_is_found_out():
    class Shares(Node):
        seen: list = []  # noqa: RUF012, the mistake

        def on_client(self, request, call):
            self.seen.append(call.value)
            return [Reply(request, len(self.seen))]

    with pytest.raises(NotDeterministic, match=r"Shares\.seen belongs to the class"):
        simulate(Shares, 2, CLIENTS, twice=True)


def test_a_node_that_fails_only_the_second_time_is_found_out():
    runs = []

    class Fails(Node):
        def on_client(self, request, call):
            runs.append(1)
            return [Reply(request, 1 // (len(runs) < 9))]

    with pytest.raises(NotDeterministic, match="ZeroDivisionError"):
        simulate(Fails, 1, [Client(0, WRITES[:6])], twice=True)


def test_nodes_that_find_no_end_are_stopped(monkeypatch):
    class Echoes(Node):
        def on_start(self, saved):
            return [Send(self.me, "again")]

        def on_message(self, sender, message):
            return [Send(self.me, "again")]

    monkeypatch.setattr("distlab.network.virtual_clock._MOST_EVENTS", 10_000)
    with pytest.raises(NodeFailed, match="the nodes find no end"):
        simulate(Echoes, 1)


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"nodes": 0}, "nodes is a number from 1"),
        ({"nodes": True}, "nodes is a number from 1"),
        ({"clients": [Client(7, READS)]}, "client 0 asks node 7; of 3 nodes"),
        ({"clients": [3]}, "client 0 is 3, and no Client"),
        ({"clients": [Client(0, Call("read"))]}, "put it into a list"),
        ({"clients": [Client(0, 5)]}, "client 0's calls are a list"),
        ({"clients": [Client(0, ["read"])]}, "client 0 asks 'read', which is no Call"),
        ({"clients": [Client(0, [Call("write", "x", open)])]}, "which holds a builtin"),
        ({"clients": [Client(0, READS, timeout_s=0)]}, "timeout_s is 0"),
        ({"clients": [Client(0, READS, pause_s=-1)]}, "pause_s is a number of seconds"),
        ({"faults": [Split(0.1, [0], [3])]}, "names node 3; of 3 nodes"),
        ({"faults": [Split(0.1, [0], [0, 1])]}, "names a node twice"),
        ({"faults": [Split(0.2, [0], until_s=0.1)]}, "ends before it begins"),
        ({"faults": [Split(-1, [0])]}, "seconds from the start"),
        ({"faults": [Crash(5, 0.1)]}, "names node 5"),
        ({"faults": [Crash(1, 0.1), Crash(1, 0.2)]}, "the node is dead already"),
        ({"faults": "crash"}, "takes Split, Crash, Cut"),
        ({"delivery": 0.1}, "delivery is 0.1"),
        ({"delivery": Delivery(delay_s=0.1)}, "the shortest and the longest time"),
        ({"delivery": Delivery(delay_s=(2, 1))}, "above the longest"),
        ({"delivery": Delivery(loss=2)}, "loss is a share"),
        ({"until_s": float("inf")}, "until_s is a number of seconds"),
        ({"clients": [Client(0, iter(READS))], "twice": True}, "only once"),
    ],
)
def test_bad_arguments_are_named(arguments, words):
    given = {"nodes": 3, "clients": CLIENTS} | arguments
    with pytest.raises(InvalidArgument, match=words):
        simulate(Echo, **given)
