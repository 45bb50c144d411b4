"""Random runs: they find planted bugs, and what they find is a schedule that plays."""

import pytest
from protocols import Counts, Gossip, Majority, ReadsOne, all_count_alike, nothing_stale
from raft import (
    AcknowledgesTooMuch,
    CommitsOldTerms,
    FitsAnywhere,
    Raft,
    VotesTwice,
    monitors,
)

from distlab import Call, InvalidArgument, NodeFailed, NotDeterministic
from distlab.network import (
    Append,
    Client,
    Delivery,
    Node,
    Reply,
    Send,
    SetTimer,
    Sync,
    Truncate,
    fuzz,
    replay,
)
from distlab.network.schedules import fuzzing
from distlab.network.schedules.properties import Property

WRITERS = [
    Client(n, [Call("write", "x", 10 * n + k) for k in range(5)], retries=3)
    for n in range(3)
]
FAULTS = {"crashes": 6, "splits": 2, "cuts": 2, "loss": 0.3, "duplicates": 0.1}
READERS = [Client(n, [Call("write", "x", n), Call("read", "x")]) for n in range(3)]


def fuzzed(make, **how):
    return fuzz(make, 3, WRITERS, monitors=monitors(), within_s=60, **FAULTS | how)


@pytest.mark.parametrize("bug", [AcknowledgesTooMuch, FitsAnywhere, VotesTwice])
def test_a_bug_of_a_raft_is_found_shrunk_and_played(bug):
    found = fuzzed(bug, seed=1, runs=200)
    assert found and len(found.schedule) < 80
    how = {"monitors": monitors(), "seed": found.seed}
    again = replay(bug, 3, WRITERS, found.schedule, **how)
    assert again.why == found.why and not again.stopped
    events = found.outcome.trace.events
    assert events == found.replay().trace.events and "<svg" in str(
        found._repr_mimebundle_()["text/html"]
    )


@pytest.mark.nightly
def test_a_commit_of_an_old_term_is_found_where_many_messages_are_lost():
    how = {"crashes": 12, "splits": 0, "cuts": 0, "loss": 0.6, "until_s": 2.0}
    how |= {"duplicates": 0.0}
    assert fuzzed(CommitsOldTerms, seed=1, runs=800, **how)


def test_a_right_raft_stands_all_faults_and_it_is_said_how_many():
    everything = {"pauses": 2, "clock_jumps": 2, "runs": 40}
    nothing = fuzzed(Raft, **everything)
    extent = nothing.explored
    assert not nothing and extent.runs == 40 and extent.events > 4_000
    assert f"40 runs, {extent.events:,} events, {extent.faults:,} faults" in repr(
        nothing
    )
    assert nothing.explored[:3] == fuzzed(Raft, **everything).explored[:3]


def test_the_same_seed_finds_the_same_and_no_step_can_be_left_out():
    one, again = (fuzz(ReadsOne, 3, READERS, nothing_stale, seed=4) for _ in range(2))
    assert one.schedule == again.schedule and one.explored.runs == again.explored.runs
    steps = list(one.schedule)
    for at in range(len(steps)):
        rest = steps[:at] + steps[at + 1 :]
        left = replay(ReadsOne, 3, READERS, rest, nothing_stale, seed=one.seed)
        assert left.stopped or not left.violated
    assert not fuzz(Majority, 3, READERS, nothing_stale, crashes=1, runs=100)


class Mixed(Raft):
    """A Raft that also appends, cuts and syncs, reads its clock and talks to itself."""

    def on_start(self, saved):
        self.seen, self.readings = list(saved.get("seen", [])), []
        return [*super().on_start(saved), Send(self.me, "hello")]

    def on_client(self, request, call):
        self.seen.append(call.value)
        cut = [Truncate("seen", 3)] if len(self.seen) > 4 else []
        kept = [Append("seen", call.value), Sync(len(self.seen)), *cut]
        return [*super().on_client(request, call), *kept, Send(self.me, "hello")]

    def on_message(self, sender, message):
        if message != "hello":
            return super().on_message(sender, message)
        self.readings.append(self.clock_s)

    def on_synced(self, token):
        self.seen.append(token)


def test_a_recorded_run_and_its_schedule_lead_to_the_same_nodes_disks_and_history():
    most = dict.fromkeys(fuzzing._FAULTS, 2)
    what = Mixed, 3, WRITERS
    wanted = Property(None, lambda nodes: True)
    shares = Delivery(), 0.3, 0.3
    plan = fuzzing._RunPlan(3, WRITERS, most, shares, (0.02, 0.04), 0.3, 7)
    runs = fuzzing._Fuzzing(what, wanted, plan, settled=False)
    for number in range(30):
        run = runs._new(fuzzing._RecordedRun, number)
        run.find(0.3)
        steps = [step for step in run.steps if step.kind != "drop"]
        played = replay(*what, steps, seed=run.seed)
        assert not played.stopped
        for host, other in zip(run.hosts, played.outcome.nodes, strict=True):
            assert (host and memory(host.node)) == (other and memory(other))
        assert played.outcome.saved == [disk.values for disk in run.disks]
        assert told(played.outcome.history) == told(run.history())


def memory(node):
    return {k: v for k, v in vars(node).items() if k not in ("random", "clock_s")}


def told(history):
    ops = sorted(history, key=lambda op: (op.client, op.start))
    return [(op.client, op.value, op.outcome, op.result) for op in ops]


class Durable(Node):
    """Appends what it is given, and answers when it is durable."""

    def on_start(self, saved):
        self.items = saved.get("items", [])

    def on_client(self, request, call):
        self.items.append(call.value)
        return [Append("items", call.value), Sync(request)]

    def on_synced(self, request):
        return [Reply(request)]


class AnswersEarly(Durable):
    def on_client(self, request, call):
        return [*super().on_client(request, call), Reply(request)]

    def on_synced(self, request):
        return None


def kept(outcome):
    (node,) = outcome.nodes
    done = [op.value for op in outcome.history if op.outcome == "ok"]
    return node is None or set(done) <= set(node.items)


def test_an_answer_before_the_sync_is_lost_with_the_power_and_only_so():
    clients = [Client(0, [Call("add", None, n) for n in range(4)])]
    how = {"settled": True, "runs": 200}
    found = fuzz(AnswersEarly, 1, clients, kept, power_losses=2, **how)
    assert "node 0 loses power" in found.schedule.to_json() and len(found.schedule) == 3
    assert not fuzz(AnswersEarly, 1, clients, kept, crashes=2, **how)
    assert not fuzz(Durable, 1, clients, kept, power_losses=2, **how)
    lost = fuzz(Durable, 1, clients, kept, disk_losses=1, **how)
    assert "node 0 crashes and loses its disk" in lost.schedule.to_json()


class Leases(Node):
    """Lends a lease until an hour of its clock; a jump lends it twice."""

    def on_start(self, saved):
        self.until_s, self.lent = 0.0, 0

    def on_client(self, request, call):
        free = self.clock_s >= self.until_s
        self.lent += free
        self.until_s = self.clock_s + 0.5 if free else self.until_s
        return [Reply(request, free)]


def test_a_clock_that_a_node_reads_is_a_step_of_the_schedule_and_others_are_none():
    clients = [Client(0, [Call("lend")] * 3)]

    def lent_once(nodes):
        return nodes[0] is None or nodes[0].lent < 2

    how = {"invariant": lent_once, "until_s": 0.2, "runs": 100}
    assert not fuzz(Leases, 1, clients, **how)
    found = fuzz(Leases, 1, clients, clock_jumps=2, **how)
    assert [s.kind for s in found.schedule] == ["call", "clock", "call"]
    stale = fuzz(ReadsOne, 3, READERS, nothing_stale, clock_jumps=3, pauses=2)
    assert "clock" not in [step.kind for step in stale.schedule]


def test_settled_outcomes_have_nothing_under_way_and_all_nodes_alive():
    adds = [Client(n, [Call("add", None, n + 1)]) for n in range(3)]
    how = {"settled": True, "runs": 100}
    assert not fuzz(Counts, 3, adds, all_count_alike, splits=0, **how)
    never = fuzz(Gossip, 3, [], lambda outcome: False, **how | {"runs": 2})
    assert not never and "; only 0 were settled" in repr(never)
    found = fuzz(Counts, 3, adds, all_count_alike, duplicates=0.5, **how)
    assert "duplicate" in [step.kind for step in found.schedule]


def test_a_node_that_raises_is_found_and_one_without_an_end_is_told(monkeypatch):
    class Raises(Node):
        def on_client(self, request, call):
            return [Send(self.me, "to myself"), Reply(request)]

        def on_message(self, sender, message):
            raise ValueError(message)

    class Endless(Node):
        def on_start(self, saved):
            return [SetTimer("again", 0)]

        on_timer = on_start

    found = fuzz(Raises, 3, READERS, lambda outcome: True)
    assert "raised ValueError: to myself" in found.why and len(found.schedule) == 1
    monkeypatch.setattr("distlab.network.schedules.fuzzing._MOST_EVENTS", 10_000)
    with pytest.raises(NodeFailed, match="find no end"):
        fuzz(Endless, 1, [], invariant=lambda nodes: True)


def test_a_check_that_judges_seconds_is_told_that_a_schedule_has_none():
    def quick(outcome):
        return outcome.elapsed_s.is_integer()

    with pytest.raises(NotDeterministic, match="Does the\n    check judge seconds"):
        fuzz(Majority, 3, READERS, quick)


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"check": None}, "give one of these"),
        ({"crashes": -1}, "crashes is a number from 0 on, and got -1"),
        ({"runs": 0.5}, "runs is a number from 0 on"),
        ({"crash": 1}, "crash is no fault here. These may happen: crashes, power"),
        ({"delivery": 3}, "delivery is 3"),
        ({"loss": 2}, "loss is a share"),
        ({"timeout_s": (0.4, 0.2)}, "timeout_s: the shortest time is above"),
        ({"timeout_s": 0.1}, "timeout_s is the shortest and the longest"),
        ({"until_s": "soon"}, "until_s is a number of seconds"),
        ({"clients": [Client(0, iter(()))]}, "gone through only once"),
    ],
)
def test_bad_arguments_are_named(arguments, words):
    given = {"clients": READERS, "check": nothing_stale} | arguments
    with pytest.raises(InvalidArgument, match=words):
        fuzz(Majority, 3, **given)
