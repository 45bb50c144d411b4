"""The Dynamo-style store: each mechanism on and off, by hand and by search."""

import random
from functools import partial
from itertools import pairwise

import pytest
from by_hand import Hands, cut_off
from stores import wait_until

from distlab.agree import (
    DynamoStore,
    KeyValue,
    LastWrite,
    check_linearizable,
    preference_list,
)
from distlab.agree.stores.store import NOTHING
from distlab.errors import InvalidArgument
from distlab.faults import Crash, Split
from distlab.network import Client, Cluster, Delivery, search, simulate
from distlab.trace import Call

WRITE, READ = Call("write", "y", 1), Call("read", "y")
HOMES, OTHERS = (0, 1, 2), (3, 4)  # of "y", on a ring of five
SLOPPY = partial(DynamoStore, sloppy=True)
HANDOFF = partial(DynamoStore, sloppy=True, handoff=True)
BLOCKING = partial(DynamoStore, read_repair="blocking")


def held(hands, nodes, key="y"):
    """Return the value of a key that each of some nodes has as its home."""
    copies = [hands.nodes[node].copies.get(key) for node in nodes]
    return [copy and copy.value for copy in copies]


def kinds(hands):
    return sorted(type(message).__name__ for _, _, message in hands.mail)


def cut_write(make):
    """A store whose three homes of y do not hear of a write at node 3."""
    hands = Hands(make, nodes=5)
    request = hands.ask(3, *WRITE)
    for _ in range(3):
        hands.deliver(cut_off(*OTHERS))
        hands.ring()
    return hands, request


def one_behind(make):
    """A store whose home 2 lacks a write."""
    hands = Hands(make)
    hands.ask(0, *WRITE)
    hands.deliver(cut_off(2))
    hands.timers.clear()
    return hands


def test_a_key_has_n_homes_in_ring_order_and_every_node_has_about_as_many_keys():
    lists = [preference_list(f"key {n}", 5) for n in range(2000)]
    assert {tuple(sorted(each)) for each in lists} == {(0, 1, 2, 3, 4)}
    assert all((b - a) % 5 == 1 for each in lists for a, b in pairwise(each))
    homes = [sum(n in each[:3] for each in lists) for n in range(5)]
    assert all(abs(count - 1200) < 120 for count in homes)
    assert preference_list("y", 5) == (*HOMES, *OTHERS)


@pytest.mark.parametrize("node", range(5))
def test_any_node_coordinates_and_only_the_homes_keep_a_copy(node):
    hands = Hands(DynamoStore, nodes=5)
    assert hands.call(node, *WRITE) is None
    assert held(hands, range(5)) == [1, 1, 1, None, None]
    assert [hands.call(n, *READ) for n in range(5)] == [1] * 5


@pytest.mark.parametrize("copies", [1, 2, 3, 5])
@pytest.mark.parametrize("call", [WRITE, READ])
def test_a_call_takes_two_delays_and_two_messages_for_each_other_home(copies, call):
    make = partial(DynamoStore, copies=copies, reads=copies, writes=copies)
    for node in range(5):
        even = Delivery((0.01, 0.01))
        run = simulate(make, 5, [Client(node, [call])], delivery=even)
        sends = [
            e for e in run.trace.events if e.kind == "send" and e.rank < 5 > e.peer
        ]
        others = set(preference_list("y", 5)[:copies]) - {node}
        assert len(sends) == 2 * len(others)
        (done,) = run.history
        assert done.end - done.start == pytest.approx(0.02 if others else 0)


def test_a_strict_quorum_answers_nothing_that_the_homes_did_not_acknowledge():
    hands, request = cut_write(DynamoStore)
    read = hands.ask(3, *READ)
    hands.deliver(cut_off(*OTHERS))
    hands.ring()
    assert request not in hands.answers
    assert hands.answers[read] == "only 0 of 3 replicas answer"


@pytest.mark.parametrize("by", ["clock", "version"])
def test_a_sloppy_write_is_acknowledged_and_lost_to_the_homes_without_handoff(by):
    hands, request = cut_write(partial(SLOPPY, conflicts=LastWrite(by)))
    read = hands.ask(4, *READ)
    for _ in range(2):
        hands.deliver(cut_off(*OTHERS))
        hands.ring()
    assert (hands.answers[request], hands.answers[read]) == (None, 1)
    hands.settle()
    assert [hands.call(home, *READ) for home in HOMES] == [None] * 3


def test_a_node_stands_in_for_one_silent_home_also_after_the_response():
    hands = Hands(SLOPPY, nodes=5)
    request = hands.ask(0, *WRITE)
    hands.deliver(cut_off(2))
    assert hands.answers[request] is None
    hands.ring()
    assert kinds(hands) == ["KeepFor"]
    hands.deliver()
    assert list(hands.nodes[3].hints) == [(2, "y")]


def test_hints_outlive_a_crash_reach_their_homes_and_are_then_deleted():
    hands, request = cut_write(HANDOFF)
    assert hands.answers[request] is None
    for node in OTHERS:
        hands.start(node)
    assert [len(hands.nodes[node].hints) for node in OTHERS] == [2, 1]
    hands.settle()
    assert held(hands, range(5)) == [1, 1, 1, None, None]
    hands.start(3)
    assert not any(node.hints for node in hands.nodes)


def test_a_hint_that_was_replaced_while_under_way_stays_and_an_old_one_does_not():
    hands, _ = cut_write(HANDOFF)
    hands.ring()  # handoff: under way
    node = hands.nodes[3]
    old = node.hints[0, "y"]
    for copy in (node.written([NOTHING], 2), old):
        hands.do(3, node._hold(0, "y", copy))
    hands.deliver()
    assert held(hands, [0]) == [1]
    hands.settle()
    assert held(hands, [0]) == [2]


def test_a_coordinator_keeps_the_hint_if_nodes_stand_in_for_none():
    hands = Hands(partial(DynamoStore, handoff=True))
    hands.ask(0, *WRITE)
    hands.deliver(cut_off(2))
    assert held(hands, HOMES) == [1, 1, None]
    hands.ring()
    hands.start(0)
    hands.settle()
    assert held(hands, [2]) == [1]


def test_handoff_alone_brings_every_copy_home_though_nodes_to_stand_in_were_down():
    keys = [f"key {n}" for n in range(20)]
    writer = Client(0, [Call("write", key, 1) for key in keys], timeout_s=3)
    down = [Crash(node, 0.001, until_s=8) for node in (3, 4)]
    run = simulate(HANDOFF, 5, [writer, Client(0, [READ], start_s=20)], faults=down)
    assert all(each.outcome == "ok" for each in run.history)
    for key in keys:
        assert held(run, preference_list(key, 5)[:3], key) == [1] * 3


@pytest.mark.parametrize("mode", ["off", "async"])
def test_a_read_repairs_a_home_that_is_behind_with_one_message(mode):
    hands = one_behind(partial(DynamoStore, read_repair=mode))
    hands.ask(0, *READ)
    for _ in range(2):  # questions, then answers
        mail, hands.mail = hands.mail, []
        for sender, to, message in mail:
            hands.do(to, hands.nodes[to].on_message(sender, message))
    assert kinds(hands) == ["Keep"] * (mode == "async")
    hands.deliver()
    assert held(hands, [2]) == [1 if mode == "async" else None]


def test_blocking_repair_answers_only_when_r_homes_have_the_copy():
    hands = one_behind(BLOCKING)
    request = hands.ask(2, *READ)
    hands.deliver(lambda sender, to, _: 1 not in (sender, to))
    assert [hands.answers[request]] == held(hands, [2]) == [1]
    hands = Hands(partial(BLOCKING, reads=3, writes=1))
    hands.ask(0, *WRITE)
    hands.deliver(lambda *_: False)
    request = hands.ask(0, *READ)
    hands.deliver(lambda _, to, m: (to, type(m).__name__) != (2, "Keep"))
    assert held(hands, HOMES) == [1, 1, None]
    assert request not in hands.answers


def test_one_exchange_of_trees_brings_each_what_the_other_has():
    hands = Hands(partial(DynamoStore, anti_entropy=True))
    for node in range(2):
        hands.ask(node, "write", f"key {node}", node)
        hands.deliver(lambda *_: False)
    hands.nodes[0].random = random.Random(2)
    hands.do(0, hands.nodes[0].on_timer("anti-entropy"))
    assert [to for _, to, _ in hands.mail] == [1]
    hands.deliver()
    assert [held(hands, [n], f"key {1 - n}") for n in range(2)] == [[1], [0]]


def test_anti_entropy_makes_homes_alike_whatever_each_of_them_missed():
    hands = Hands(partial(DynamoStore, anti_entropy=True), nodes=5)
    for number in range(40):
        silent = number % 5
        hands.ask((silent + 1) % 5, "write", f"key {number}", number)
        hands.deliver(cut_off(silent))
    hands.settle()
    for number in range(40):
        homes = preference_list(f"key {number}", 5)[:3]
        assert held(hands, homes, f"key {number}") == [number] * 3
    hands.ring()
    assert set(kinds(hands)) == {"TreeHashes"}
    hands.deliver()
    assert hands.mail == []


@pytest.mark.parametrize("by, last", [("clock", "first"), ("version", "second")])
def test_a_later_write_is_lost_if_its_coordinators_clock_is_behind(by, last):
    hands = Hands(partial(DynamoStore, conflicts=LastWrite(by)))
    hands.nodes[0].clock_s, hands.nodes[1].clock_s = 100.0, 99.5
    hands.call(0, "write", "x", "first")
    hands.call(1, "write", "x", "second")
    assert hands.call(2, "read", "x") == last


def test_a_clock_that_jumps_back_orders_the_writes_of_its_own_node_as_they_came():
    hands = Hands(DynamoStore)
    for clock_s, value in ((100.0, 1), (-5.0, 2), (100.0, 3)):
        hands.nodes[0].clock_s = clock_s
        hands.call(0, "write", "x", value)
        assert hands.call(1, "read", "x") == value


def test_two_writes_of_one_time_stamp_end_alike_on_all_replicas():
    hands = Hands(DynamoStore)
    one = hands.nodes[0].written([NOTHING], "a")
    other = one._replace(value="b")
    for node, pair in zip(hands.nodes, [(one, other), (other, one)] * 2, strict=False):
        for copy in pair:
            hands.do(node.me, node._keep("x", copy))
    assert held(hands, HOMES, "x") == ["b"] * 3


class Union(LastWrite):
    """Keeps everything that was ever written."""

    nothing = frozenset()

    def written(self, known, value, node, clock_us):
        return known | {value}

    def merged(self, mine, theirs):
        return mine | theirs

    def shown(self, held):
        return tuple(sorted(held))


def test_the_resolution_of_conflicts_can_be_another():
    hands = Hands(partial(DynamoStore, conflicts=Union()))
    hands.ask(0, "write", "x", "milk")
    hands.ask(1, "write", "x", "eggs")
    hands.deliver()
    assert [hands.call(n, "read", "x") for n in range(3)] == [("eggs", "milk")] * 3


class Lies(DynamoStore):
    """Replica 2 answers every question with a copy of its own making."""

    def _copy(self, key):
        copy = super()._copy(key)
        if self.me != 2:
            return copy
        return copy._replace(version=copy.version._replace(counter=10**9), value="lie")


def test_the_value_of_a_lying_replica_is_read_and_repaired_into_the_others():
    hands = Hands(partial(Lies, read_repair="async"))
    hands.call(0, *WRITE)
    hands.ask(0, *READ)
    hands.deliver(cut_off(1))
    hands.settle()
    assert hands.call(0, *READ) == "lie"


@pytest.mark.parametrize(
    "options, words",
    [
        ({"copies": 4}, "copies=4: of 3 nodes 1 to 3 can hold"),
        ({"copies": 0}, "copies=0"),
        ({"copies": 2, "reads": 3}, "reads=3: of 2 replicas"),
        ({"writes": 0}, "writes=0"),
        ({"read_repair": True}, 'read_repair=True: it is "off", "async"'),
    ],
)
def test_parameters_that_fit_no_store_are_named(options, words):
    with pytest.raises(InvalidArgument, match=words):
        Hands(partial(DynamoStore, **options))
    with pytest.raises(InvalidArgument, match="by='time'"):
        LastWrite("time")


SPLIT = {"splits": [(HOMES, OTHERS)], "timers": 2}
APART = [Client(3, [WRITE]), Client(0, [READ])]
TWO_READERS = [Client(0, [WRITE]), Client(1, [READ]), Client(2, [READ])]
LATER = partial(DynamoStore, read_repair="async")
R_ONE = partial(BLOCKING, reads=1, writes=3)
FOUND = {
    "sloppy": (SLOPPY, 5, APART, SPLIT),
    "sloppy, with handoff": (HANDOFF, 5, APART, SPLIT),
    "partial write": (DynamoStore, 3, TWO_READERS, {"timers": 0}),
    "partial write, repaired later": (LATER, 3, TWO_READERS, {"timers": 0}),
    "partial write, R = 1": (R_ONE, 3, TWO_READERS, {"timers": 0}),
}
NOT_FOUND = {
    "strict": (DynamoStore, 5, APART, SPLIT),
    "partial write, repaired before": (BLOCKING, 3, TWO_READERS, {"timers": 0}),
}


@pytest.mark.parametrize("name", FOUND | NOT_FOUND)
def test_r_plus_w_above_n_is_linearizable_only_if_strict_and_repaired_before(name):
    def linearizable(outcome):
        return check_linearizable(outcome.history, KeyValue())

    make, nodes, clients, limits = (FOUND | NOT_FOUND)[name]
    found = search(make, nodes, clients, linearizable, within_s=30, **limits)
    assert bool(found) == (name in FOUND), found
    if found:
        assert len(found.schedule) <= 8
        assert linearizable(found.replay()).violated
    else:
        assert found.explored.complete


def test_every_acknowledged_write_is_at_its_homes_after_faults_at_random():
    make = partial(HANDOFF, anti_entropy=True, conflicts=LastWrite("version"))
    rough = Delivery((0.001, 0.05), loss=0.2, duplicate=0.1)
    for seed in range(4):
        clients = [
            Client(n, [Call("write", f"{n} {k}", k) for k in range(6)], timeout_s=0.8)
            for n in range(5)
        ]
        sides = {seed % 5, (seed + 2) % 5}, {seed % 5, (seed + 2) % 5} ^ set(range(5))
        faults = Split(0.05, *sides, until_s=1.5), Crash((seed + 1) % 5, 0.3, 1.0)
        clients.append(Client(0, [READ], start_s=25))
        run = simulate(make, 5, clients, faults=faults, delivery=rough, seed=seed)
        done = [e for e in run.history if e.outcome == "ok" and e.op == "write"]
        assert len(done) > 15
        for each in done:
            homes = preference_list(each.key, 5)[:3]
            assert held(run, homes, each.key) == [each.value] * 3


def test_real_processes_hand_a_hint_off_when_the_home_is_back():
    with Cluster(HANDOFF, 5) as cluster:
        cluster.split(HOMES, OTHERS)
        cluster.kill(0)
        assert cluster.call(3, "write", "y", 2).outcome == "ok"
        assert cluster.call(1, "read", "y").result is None
        cluster.kill(4)
        cluster.restart(4)
        cluster.heal()
        cluster.restart(0)
        wait_until(lambda: all("'y'" in disk for disk in cluster.outcome().saved[:3]))
        assert [cluster.call(n, "read", "y").result for n in HOMES] == [2] * 3
