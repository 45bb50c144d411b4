"""What the check of exercise 04 knows of replicas, and when a read is too old."""

import random
from functools import partial

import pytest
from learner_cells import learner_of

from distlab import Operation
from distlab.agree import KeyValue, check_linearizable
from distlab.checks import replication
from distlab.checks.kit import on_nodes
from distlab.checks.kit.grading import judge
from distlab.faults import Crash, Split
from distlab.history import History
from distlab.network import (
    Client,
    Delivery,
    Node,
    Reply,
    Save,
    Send,
    SetTimer,
    simulate,
)
from distlab.trace import Call

learner = partial(learner_of, "04_replication_and_quorums")


class Remembers(Node):
    """Sends and saves all calls that it has heard of; a read returns them."""

    def __init__(self, me, peers):
        super().__init__(me, peers)
        self.heard = set()

    def on_start(self, saved):
        self.heard = set(saved.get("heard", ()))
        yield SetTimer("again", 0.2)

    def on_client(self, request, call):
        if call.op != "read":
            self.heard.add((call.op, call.value))
        yield from self.on_message(self.me, ())
        yield Reply(request, sorted(self.heard))

    def on_message(self, sender, heard):
        self.heard |= set(heard)
        yield Save("heard", sorted(self.heard))

    def on_timer(self, name):
        yield SetTimer("again", 0.2)
        yield from [Send(peer, sorted(self.heard)) for peer in self.peers]


def random_run(seed):
    draw = random.Random(seed)
    clients = [
        Client(n % 3, [Call("add", "n", n), Call("read", "n")], draw.uniform(0, 2))
        for n in range(12)
    ]
    how = {"faults": [Split(0.5, [0], [1, 2], until_s=1.2), Crash(1, 0.8, until_s=1.1)]}
    rough = Delivery((0.001, 0.3), loss=0.2, duplicate=0.3)
    return simulate(Remembers, 3, clients, delivery=rough, seed=seed, **how)


def test_the_check_knows_of_what_nodes_know_that_remember_all():
    known = 0
    for seed in range(20):
        for read, updates in replication._followed(random_run(seed)):
            told = sorted((one.op, one.value) for one, _ in updates)
            assert told == read.result
            known += len(told)
    assert known > 500


def random_history(draw):
    """Return writes of one client; two others read any value whose write has begun."""
    operations, at = [], 0
    for value in range(1, 4):
        start = at + draw.randint(1, 3)
        at = start + draw.randint(1, 3)
        end = at if value < 3 or draw.random() < 0.5 else None
        what = start, end, "ok" if end else "unknown"
        operations.append(Operation(0, "write", "x", value, *what))
    for client in (1, 2):
        at = 0
        for _ in range(3):
            start = at + draw.randint(1, 3)
            at = start + draw.randint(1, 3)
            begun = [v for v in (1, 2, 3) if operations[v - 1].start < at]
            what = start, at, "ok", draw.choice([None, *begun][-2:])
            operations.append(Operation(client, "read", "x", None, *what))
    return History(operations)


def test_no_read_is_older_exactly_if_the_history_is_linearizable():
    draw, found = random.Random(4), []
    for _ in range(400):
        history = random_history(draw)
        verdict = check_linearizable(history, KeyValue())
        assert (replication._older(history) is not None) == verdict.violated
        found.append(verdict.violated)
    assert 50 < sum(found) < 350


@pytest.mark.parametrize("searching", [False, True], ids=["simulated", "searched"])
def test_a_method_of_a_node_is_answered_and_leaves_the_node_as_it_is(searching):
    clients = [Client(n, [Call("add", "n", n + 1)]) for n in range(3)]
    asked = []

    def sum_of_all(run):
        asked.append([node.result_of("value") for node in run.nodes])
        return asked[-1] == [node.result_of("value") for node in run.nodes] == [6] * 3

    with on_nodes(learner()["Counter"], 3) as nodes:
        if searching:
            how = {"settled": True, "timers": 0, "within_s": 0.5}
            assert not nodes.search(3, clients, sum_of_all, **how)
        else:
            assert sum_of_all(nodes.simulate(3, clients))
    assert asked


STALE = "mine if node == self.me else (ups, downs)"  # the last state that arrived


def test_the_order_of_messages_that_breaks_a_merge_plays_below_the_verdict():
    make = learner("(max(ups, mine[0]), max(downs, mine[1]))", STALE)
    verdict = judge(replication.counts, make["Counter"], ("searched",))
    assert verdict.outcome == "fail" and "must not replace" in verdict.hints[0]
    assert "1. client 0 asks node 0: add n" in verdict.found
    assert "expected" in verdict.found and verdict.drawn()


def test_a_value_that_fails_in_a_search_is_the_learners_mistake():
    make = learner("return sum(ups - downs for", "return 1 // 0 + sum(ups - downs for")
    verdict = judge(replication.counts, make["Counter"], ("searched",))
    assert verdict.outcome == "fail" and "ZeroDivisionError" in verdict.found


ASK = "yield from self.ask(request, self.peers[: self.majority - 1])"
ANSWER = "yield from self.answer(request, newest.value)"
SUMS = "ups, downs = self.state.get(self.me, (0, 0))"
SLIPS = {  # what a learner writes by mistake: old, new, and words of its hint
    "a yield in update": (SUMS, f"{SUMS}; yield", "they need no `yield`"),
    "no first entry": (SUMS, "ups, downs = self.state[self.me]", "no entry of"),
    "a lambda in the state": (SUMS, f"{SUMS}; self.state[9] = lambda: 0", "plain data"),
    "an ask that is not yielded": (
        ASK,
        ASK.removeprefix("yield from "),
        "sent nothing",
    ),
    "a generator yielded": (ASK, ASK.replace(" from", ""), "write `yield from`"),
    "a repair after the answer": (
        ANSWER,
        f"{ANSWER}; yield from self.repair(request, self.peers, newest)",
        "must come before",
    ),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_meets_the_hint_that_names_it(slip):
    old, new, words = SLIPS[slip]
    make = learner(old, new)
    if old is SUMS:
        verdict = judge(replication.counts, make["Counter"], ("one replica",))
    else:
        verdict = judge(replication.repairs, make["ReadRepair"], ("nothing is stale",))
    assert verdict.outcome == "fail" and words in verdict.hints[0], verdict


def test_a_long_run_that_fails_lists_the_last_updates_only():
    last = learner("seen[self.me] = seen.get(self.me, 0) + 1", "seen[self.me] = 1")
    verdict = judge(replication.contains, last["ORSet"], ("after many updates",))
    assert verdict.outcome == "fail" and not verdict.drawn()
    assert len(verdict.found.splitlines()) <= 9, verdict.found
