"""What the check of exercise 05 asks of a Raft, and how it fuzzes a learner's nodes."""

from functools import partial
from types import SimpleNamespace

import pytest
from learner_cells import learner_of

from distlab.agree.raft import Raft
from distlab.agree.raft.log import RaftLog
from distlab.agree.raft.messages import RaftEntry, RaftSnapshot, RequestVote
from distlab.checks import consensus
from distlab.checks.consensus_rules import LOG_ROWS, VOTE_ROWS, rows_of
from distlab.checks.kit import Wrong, last_steps, listed, on_nodes
from distlab.checks.kit.grading import judge
from distlab.faults import Crash
from distlab.network import (
    Append,
    Client,
    EventSchedule,
    Monitor,
    Node,
    Reply,
    SetTimer,
    Sync,
    simulate,
)
from distlab.network.schedules.schedule import ScheduleStep
from distlab.trace import Call

learner = partial(learner_of, "05_commit_and_consensus")


def raft_with(term=0, log="", voted_for=None):
    """Return the library's Raft, node 0 of five, in a state."""
    node = Raft(0, (1, 2, 3, 4))
    entries = [RaftEntry(int(t), at, 0, None) for at, t in enumerate(log, 1)]
    node.log = RaftLog(RaftSnapshot(0, 0, (0, 1, 2, 3, 4)), entries)
    node.term, node.voted_for, node.commit = term, voted_for, 0
    return node


def merged(node, previous, entries):
    kept, new = node.merged(previous, entries)
    return "".join(str(e.term) for e in [*node.log.entries[:kept], *new])


def test_the_rows_of_the_rules_say_what_the_librarys_raft_does():
    compared = 0
    for state, rule, right, *_ in rows_of(LOG_ROWS + VOTE_ROWS):
        name, asked = rule.split("(")[0], raft_with
        if name not in ("may_vote", "fits", "merged"):
            continue
        node = asked(**eval(f"dict({state})"))

        def log(terms, rule=rule):
            first = int(rule.split("(")[1].split(",")[0]) + 1
            return [RaftEntry(int(t), at, 0, None) for at, t in enumerate(terms, first)]

        how = {"may_vote": node.may_vote, "fits": node.fits}
        how["merged"] = partial(merged, node)
        assert str(eval(rule, how | {"log": log, "RequestVote": RequestVote})) == right
        compared += 1
    assert compared > 20


VOTES_TWICE = ("free = self.voted_for in (None, candidate)", "free = True")


def test_a_random_run_that_breaks_a_property_is_shrunk_and_plays():
    verdict = judge(consensus.elects, learner(*VOTES_TWICE)["Votes"], ("random runs",))
    assert verdict.outcome == "fail" and "both led term" in verdict.found
    assert "\n1. " in verdict.found and len(verdict.found.splitlines()) < 20
    assert "one node has voted for both" in verdict.hints[0] and verdict.drawn()


TO_RESTORE = "\n        ### END SOLUTION\n\n    def restore(self, saved):"


def told(check, kind, old, new):
    """Return the verdict on a wrong answer, from the rows of the rules."""
    verdict = judge(check, learner(old, new)[kind], ("the rules",))
    assert verdict.outcome == "fail"
    return verdict


@pytest.mark.parametrize(
    "old, new, words",
    [
        ("CANDIDATE, None,", "CANDIDATE, self.leader,", "knows no leader"),
        ("self.role, self.leader = FOLLOWER, None",
         "self.role, self.leader = FOLLOWER, None\n        yield", "its role"),
        ("max(self.match[sender], reply.last) + 1", "reply.last + 1", "holds still"),
        ("last = min(self.last, sent.previous - 1)", "last = 0", "committed here"),
        ("if self.role != LEADER or reply", "if reply", "go on as leader"),
        ("fits, last, sent.round", "fits, last, self.round", "names the round"),
        ("return self.sessions[client][1]", "return", "the first time"),
        ("round >= read.round", "round == read.round", "or a later one"),
        ("self.voted_for, self.log = saved", "self.voted_for, log = saved\n"
         "        self.log = tuple(log)", "what kind of sequence"),
        (TO_RESTORE, f", self.commit{TO_RESTORE}\n        *saved, _ = saved",
         "written whenever"),
        ("return max(self.commit, self.first)", "return self.last", "waited for"),
    ],
)  # fmt: skip
def test_a_rule_that_passes_many_runs_is_wrong_in_one_state(old, new, words):
    assert words in told(consensus.serves, "Store", old, new).hints[0]


def test_a_verdict_names_the_fields_of_messages_and_what_was_not_sent():
    old = "        yield Send(sender, Vote(self.term, granted))"
    verdict = told(consensus.elects, "Votes", old, f"        if granted:\n    {old}")
    assert "RequestVote(term=3, last=3, last_term=2)" in verdict.found
    assert verdict.found.endswith("yours     nothing") and "told so" in verdict.hints[0]


def test_a_rule_that_raises_is_told_with_the_state_that_it_was_asked_in():
    wrong = "mine = self.term_at(self.last),", "mine = self.log[-1].term,"
    verdict = told(consensus.elects, "Votes", *wrong)
    assert "IndexError" in verdict.found and "with term=1, log=''" in verdict.found
    assert "may be empty" in verdict.hints[0]


@pytest.mark.parametrize(
    "case, kind, old, new, words",
    [
        ("leaders cut off", "Votes", "_for = term, None", "_for = term, 0", "no lead"),
        ("few messages", "Votes", "            yield Send(peer, request)",
         "            yield Send(peer, request)\n            yield Send(peer, request)",
         "at most"),
        ("partitions heal", "Replicas", "self.commit_up_to(min(sent.commit, last))",
         "self.commit_up_to(0)", "was back"),
        ("partitions heal", "Replicas", "last = min(self.last, sent.previous - 1)",
         "last = sent.previous - 1", "messages with entries"),
        ("retries", "Store", "[0] < number", "[0] <= number", "read of x returned"),
        ("restarts", "Store", "for, self.log = saved", "for, _ = saved", "append"),
        ("leaders cut off", "Store", "return heard >= self.majority and",
         "return", "read of x returned"),
        ("few messages", "Store", "return max(self.commit, self.first)",
         "self.log.append(Entry(self.term))\n        return self.first", "entries"),
    ],
)  # fmt: skip
def test_a_planned_run_finds_what_its_name_says(case, kind, old, new, words):
    check = {"Votes": "elects", "Replicas": "replicates", "Store": "serves"}[kind]
    make = learner(old, new)[kind]
    verdict = judge(getattr(consensus, check), make, (case,))
    assert verdict.outcome == "fail" and words in verdict.found and verdict.drawn()


def test_attributes_of_another_kind_are_named_and_not_believed():
    make = learner("self.commit = max(self.commit, index)", "self.commit = 'all'")
    with pytest.raises(AssertionError, match="term, commit or applied is no whole"):
        log = ((1, 0, None),)
        about = {"term": 1, "commit": "all", "applied": 0, "log": log, "role": ""}
        consensus._view(SimpleNamespace(**about))
    assert judge(consensus.elects, make["Votes"], ("few messages",)).outcome == "pass"


class Counts(Node):
    """Counts its starts on disk, and shows how often it has written."""

    def on_start(self, saved):
        self.starts = saved.get("starts", [])
        self.drawn = self.random.random()
        yield Append("starts", self.drawn)
        yield Sync("start")

    def on_synced(self, token):
        self.synced = token
        yield SetTimer("again", 1)

    def on_client(self, request, call):
        yield Reply(request, self.clock_s)


class Starts(Monitor):
    """What nodes have shown."""

    def __init__(self):
        self.seen = []

    def observe(self, nodes, node):
        self.seen.append((nodes[node].starts, nodes[node].synced, nodes[node].drawn))


def test_monitors_read_attributes_and_lists_on_disk_come_back():
    watch, clients = Starts(), [Client(0, [Call("read", "x")], 2)]
    with on_nodes(Counts, 1, shows=("starts", "synced", "drawn")) as nodes:
        how = {"faults": Crash(0, 0.5, until_s=1), "monitors": [watch]}
        run = nodes.simulate(1, clients, **how)
    (starts, _, first), *_, (again, synced, second) = watch.seen
    assert starts == () and again == (first,) and synced == "start"
    assert first != second and [one.result for one in run.history] == [2.0]


class Lent(Node):
    """Answers whether it is the first, as far as its class's memory knows."""

    taken = []  # noqa: RUF012, this is the point

    def on_client(self, request, call):
        self.taken.append(self.me)
        yield Reply(request, len(self.taken) == 1)


TAKERS = [Client(node, [Call("take", "x")], 0.1) for node in range(2)]


def firsts(run):
    return [one.result for one in run.history].count(True)


def test_memory_that_nodes_share_is_of_no_use_in_a_planned_run():
    with on_nodes(Lent, 2) as nodes:
        assert firsts(nodes.simulate(2, TAKERS)) == 2
        assert not nodes.fuzz(2, TAKERS, lambda run: firsts(run) < 2, list, runs=5)


def test_a_run_that_is_wrong_only_with_shared_memory_is_told_as_chance():
    with on_nodes(Lent, 2) as nodes, pytest.raises(Wrong, match="share") as wrong:
        nodes.fuzz(2, TAKERS, lambda run: firsts(run) > 0, list, runs=5)
    assert wrong.value.facts["chance"]


def test_a_node_that_fails_at_random_is_the_learners_mistake_and_plays():
    make = learner("self.votes.add(sender)", "self.votes.add([])")["Votes"]
    verdict = judge(consensus.elects, make, ("random runs",))
    assert verdict.outcome == "fail" and verdict.found.count("TypeError") == 1
    node = verdict.found.split()[1]
    last = verdict.found.splitlines()[-1]
    assert f". node {node} gets " in last and "'Vote" in last and verdict.drawn()


def test_a_long_schedule_or_history_is_told_by_its_last_lines():
    steps = [ScheduleStep("timer", n, 0, "x" * 300) for n in range(30)]
    lines = last_steps(SimpleNamespace(schedule=EventSchedule(steps))).splitlines()
    assert lines[0] == "The last 12 of 30 steps; the player has all:"
    assert lines[1].startswith("19. the timer") and max(map(len, lines)) == 160
    outcome = simulate(Counts, 1, [Client(0, [Call("read", "x")] * 12)])
    assert len(listed(outcome, outcome.history).splitlines()) == 12
