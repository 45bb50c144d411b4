"""Two-phase and three-phase commit: atomic, blocked, and broken by a rule taken out."""

import itertools

import pytest
from artists import assert_legible, drawn
from soaks import nightly

from distlab import Call, Crash, InvalidArgument, Split, show
from distlab.agree.commit import (
    POINTS,
    ThreePhaseCommit,
    TwoPhaseCommit,
    atomic,
    crash_points,
    never_blocks,
)
from distlab.agree.commit.two_phase import Status
from distlab.network import Client, Delivery, Send, Sync, run, search, simulate

TRANSFER = Call("transfer", None, {1: -30, 2: 30})
ONE = [Client(0, [TRANSFER])]
LATE = Client(0, [Call("read")], start_s=0.9)  # so that a run goes on until then
THREE = [Client(0, [Call("transfer", None, {1: -30, 2: 10, 3: 20})]), LATE]
SLOW = Delivery((0.001, 0.02))  # below half of the protocols' shortest time-out
BOTH = [TwoPhaseCommit, ThreePhaseCommit]


def ends(run):
    """Return each participant's balance."""
    return [node.balance for node in run.nodes[1:]]


@pytest.mark.parametrize("protocol", BOTH)
def test_a_transfer_changes_all_accounts_or_none(protocol):
    calls = [TRANSFER, Call("transfer", None, {1: -90, 2: 90})]
    done = simulate(protocol, 3, [Client(0, calls, pause_s=0.1)])
    assert [each.outcome for each in done.history] == ["ok", "failed"], "overdrawn"
    assert ends(done) == [70, 130]


@pytest.mark.parametrize("protocol, messages", [*zip(BOTH, (3, 5), strict=True)])
@pytest.mark.parametrize("changes", [{1: 0}, {1: -1, 2: 1}, {2: 3, 4: -4, 5: 1}])
def test_each_participant_costs_three_messages_or_five(protocol, messages, changes):
    done = simulate(protocol, 6, Client(0, [Call("transfer", None, changes)]))
    sends = [each for each in done.trace.events if each.kind == "send"]
    between = [each for each in sends if max(each.rank, each.peer) < 6]
    assert len(between) == messages * len(changes)


@pytest.mark.parametrize("protocol", BOTH)
def test_of_two_transfers_that_want_one_lock_at_most_one_commits(protocol):
    two = [Client(0, [TRANSFER]), Client(0, [Call("transfer", None, {2: -5, 1: 5})])]
    for seed in range(20):
        done = simulate(protocol, 3, two, seed=seed)
        assert not atomic(done.nodes).violated
        assert sum(each.outcome == "ok" for each in done.history) <= 1


def test_an_account_is_locked_from_its_vote_to_the_decision_also_over_a_restart():
    read = [Call("read")]
    looks = [Client(1, read, start_s=at_s) for at_s in (0.2, 0.6, 1.5)]
    crashes = [Crash(0, 0.0035, 1.0), Crash(1, 0.3, 0.4)]
    done = simulate(TwoPhaseCommit, 3, [*ONE, *looks], faults=crashes)
    locked, again, free = (
        done.history.of(client).operations[0] for client in (1, 2, 3)
    )
    assert (locked.outcome, again.outcome) == ("failed", "failed")
    assert (free.outcome, free.result) == ("ok", 100)
    notes = {event.label for event in done.trace.events if event.kind == "mark"}
    assert "in doubt, locked by 1" in notes
    assert "blocked by 1" in notes


@pytest.mark.parametrize("faults", [{"power_losses": 2}, {"drops": 2, "duplicates": 1}])
def test_no_schedule_makes_two_phase_commit_decide_twice(faults):
    two = [*ONE, Client(0, [Call("transfer", None, {1: 5, 2: -5})])]
    explored = search(TwoPhaseCommit, 3, two, invariant=atomic, within_s=0.6, **faults)
    assert not explored, explored


class TimesOut(TwoPhaseCommit):
    """A participant that voted yes times out, and aborts."""

    def on_doubt(self, txn):
        return self.learn(txn, "aborted")


class TakesDoubtForNo(TwoPhaseCommit):
    """Participants that are all in doubt agree on abort."""

    def termination(self, states):
        return super().termination(states) or "aborted"


class CommitsWithoutOne(TwoPhaseCommit):
    """The coordinator commits with the first yes."""

    def decision(self, votes):
        return "committed" if True in votes else super().decision(votes)


def unsynced(node, effects):
    """Yield effects, with those that wait for a sync at once."""
    for effect in effects:
        if isinstance(effect, Sync):
            yield from node.on_synced(effect.token)
        else:
            yield effect


class SendsUnsynced(TwoPhaseCommit):
    """The coordinator sends a decision that a power loss may undo."""

    def conclude(self, txn, outcome):
        return unsynced(self, super().conclude(txn, outcome))


class VotesUnsynced(TwoPhaseCommit):
    """A participant sends a vote that a power loss may undo."""

    def prepare(self, txn, record):
        return unsynced(self, super().prepare(txn, record))


class TellsMoreThanSynced(TwoPhaseCommit):
    """A node tells the state at a sync's end, which covers the one at its begin."""

    def on_synced(self, token):
        if token[0] == "status" and self.me == 0:
            txn = token[2].txn
            return [Send(token[1], Status(self.recorded_outcome(txn), txn))]
        return super().on_synced(token)

    def recorded_outcome(self, txn):
        return super().recorded_outcome(txn) or "in doubt"


class ForgetsItsNo(TwoPhaseCommit):
    """A participant that is asked before it has voted says abort, and may vote yes."""

    def report(self, txn, sender):
        unknown = self.me != 0 and txn not in self.log
        no = [Send(sender, Status("aborted", txn))]
        return no if unknown else super().report(txn, sender)


BROKEN = [
    (TimesOut, "committed at", {}),
    (TakesDoubtForNo, "committed at", {}),
    (CommitsWithoutOne, "without a vote in the log", {}),
    (SendsUnsynced, "committed at", {"power_losses": 1, "timers": 1}),
    (VotesUnsynced, "without a vote in the log", {"power_losses": 1}),
    nightly(TellsMoreThanSynced, "committed at", {"power_losses": 1, "timers": 2}),
    (ForgetsItsNo, "committed at", {}),
]


@pytest.mark.parametrize("protocol, why, faults", BROKEN)
def test_a_search_finds_the_rule_that_is_taken_out(protocol, why, faults):
    found = search(protocol, 3, ONE, invariant=atomic, within_s=20, **faults)
    assert found, found
    assert why in found.why
    assert len(found.schedule) <= 17
    assert atomic(found.replay().nodes).why == found.why


def test_participants_block_without_the_coordinator():
    found = search(TwoPhaseCommit, 3, ONE, invariant=never_blocks, crashes=1)
    assert len(found.schedule) == 9
    assert "node 0 crashes" in map(str, found.schedule)


class Dies:
    """A base before a protocol: a node of `dies` ends after so many messages."""

    dies, sent, dead = {}, 0, False

    def until_death(self, method, *event):
        for effect in () if self.dead else method(*event) or ():
            if isinstance(effect, Send):
                self.dead |= self.sent == self.dies.get(self.me)
                self.sent += 1
            if self.dead:
                return
            yield effect

    def on_client(self, request, call):
        return self.until_death(super().on_client, request, call)

    def on_message(self, sender, message):
        return self.until_death(super().on_message, sender, message)

    def on_timer(self, name):
        return self.until_death(super().on_timer, name)

    def on_synced(self, token):
        return self.until_death(super().on_synced, token)


@pytest.mark.parametrize("second", [(1, 2), nightly((0, 1, 2, 3, 4, 5))])
def test_three_phase_commit_blocks_in_no_deaths_where_two_phase_commit_does(second):
    blocked = dict.fromkeys(BOTH, 0)
    pairs = itertools.product(BOTH, range(4), range(10), range(1, 4), second)
    for protocol, one, count, other, messages in pairs:
        dies = {other: messages} | {one: count}
        make = type("Dying", (Dies, protocol), {"dies": dies})
        nodes = simulate(make, 4, THREE, delivery=SLOW, seed=4).nodes
        assert not atomic(nodes).violated, (protocol, dies)
        blocked[protocol] += any(n.locked_by and not n.dead for n in nodes[1:])
    assert blocked[ThreePhaseCommit] == 0 < blocked[TwoPhaseCommit]


def test_a_participant_that_restarts_asks_and_does_not_decide():
    restarts = [Crash(0, 0.007, 0.6), Crash(3, 0.0045, 0.8)]
    alone = [Crash(0, 0.007), Crash(1, 0.5), Crash(2, 0.5), restarts[1]]
    for seed in range(8):
        nodes = simulate(ThreePhaseCommit, 4, THREE, faults=restarts, seed=seed).nodes
        assert [node.balance for node in nodes[1:]] == [70, 110, 120]
        last = simulate(ThreePhaseCommit, 4, THREE, faults=alone, seed=seed).nodes[3]
        assert last.locked_by, "the others may have decided"


def test_a_partition_between_vote_and_decision_breaks_three_phase_commit():
    later, broken = [*ONE, LATE], []
    for at_ms in range(12):
        cut = Split(at_ms / 1000, [0, 1], [2])
        if atomic(simulate(ThreePhaseCommit, 3, later, faults=cut).nodes).violated:
            broken.append(at_ms)
        assert not atomic(simulate(TwoPhaseCommit, 3, later, faults=cut).nodes).violated
    assert broken == [*range(broken[0], broken[-1] + 1)]
    assert 0 < broken[0] <= broken[-1] < 11


def test_a_message_that_is_late_is_enough_to_break_three_phase_commit():
    found = search(ThreePhaseCommit, 3, ONE, invariant=atomic)
    assert "committed at" in found.why
    assert len(found.schedule) == 10
    assert not [step for step in found.schedule if step.kind in ("crash", "drop")]


TABLE = {
    "before prepare": ("no vote", "no vote", "aborted"),
    "after one prepare": ("aborted", "aborted", "aborted"),
    "before the decision is on disk": ("blocked", "blocked", "aborted"),
    "before the decision is sent": ("blocked", "blocked", "committed"),
    "after one has the decision": ("committed", "committed", "committed"),
}


def test_the_coordinator_killed_at_five_points_simulated():
    assert crash_points() == TABLE
    table = crash_points(ThreePhaseCommit)
    assert not [row for row in table.values() if "blocked" in row]


@pytest.mark.parametrize("points", [list(POINTS)[2:4], nightly(list(POINTS))])
def test_the_coordinator_killed_at_five_points_with_real_processes(points):
    table = crash_points(points=points, real=True)
    assert table == {point: TABLE[point] for point in points}


def test_money_is_conserved_on_real_processes_with_a_kill():
    calls = [Call("transfer", None, {1: -n, 2: n}) for n in range(1, 9)]
    clients = [Client(0, calls, timeout_s=0.5) for _ in range(2)]
    done = run(TwoPhaseCommit, 3, clients, faults=Crash(0, 0.05, 0.2))
    assert not atomic(done.nodes).violated
    assert sum(ends(done)) == 200


@pytest.mark.parametrize(
    "changes", [None, {}, {1: -1}, {0: -1, 1: 1}, {1: -1, 7: 1}, {1: -0.5, 2: 0.5}]
)
def test_a_transfer_that_is_none_is_refused(changes):
    done = simulate(TwoPhaseCommit, 3, Client(0, [Call("transfer", None, changes)]))
    assert done.history[0].outcome == "failed"
    assert ends(done) == [100, 100]


def test_a_point_that_is_none_is_refused_by_name():
    with pytest.raises(InvalidArgument, match=r"'at noon'.*'before prepare'"):
        crash_points(points=["at noon"])


def test_the_picture_shows_each_node_in_its_state_and_who_is_in_doubt():
    nodes = simulate(TwoPhaseCommit, 3, ONE, faults=Crash(0, 0.0035)).nodes
    picture = show.commit_states(nodes, 1, title="Blocked")
    assert "Node 0: dead. Node 1: in doubt." in picture.alt
    assert len(drawn(picture, "pill")) == 5
    assert_legible(picture)
    with pytest.raises(InvalidArgument, match=r"1 to 5 nodes"):
        show.commit_states([object()], 1)
