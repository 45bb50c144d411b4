"""Without one rule of Raft, a schedule is found that breaks one of its properties."""

from functools import partial
from random import Random

import pytest
import raft_bugs as bugs
from raft_bugs import ALL, FAST, GROWS, JUDGED, all_monitors, fuzzed, hunt, writes

from distlab.agree.raft import RaftStore
from distlab.network import replay, step_through

LEADS, LOGS = "election safety", "log matching"
COMPLETE, STATES = "leader completeness", "state machine safety"
CLIENTS, ORDER = "client", "No order explains"  # two verdicts on what clients saw

# What breaks without the rule, and a seed with which that is found soon.
BREAKS = {
    bugs.VoteNotSaved: (LEADS, 0),
    bugs.TermNotSaved: (LEADS, 4),
    bugs.VoteForOlderLog: (COMPLETE, 3),
    bugs.NoPreviousTest: (LOGS, 4),
    bugs.AlwaysTruncates: (STATES, 4),
    bugs.CommitsOldTerms: (COMPLETE, 0),
    bugs.StaleReply: (LEADS, 4),
    bugs.MatchIsNext: (COMPLETE, 3),
    bugs.LocalRead: (CLIENTS, 1),
    bugs.AnswersByIndex: (CLIENTS, 1),
    bugs.NeverStepsDown: (LEADS, 3),
    bugs.TwoChanges: (COMPLETE, 0),
    bugs.AppliesTwice: (ORDER, 2),
    bugs.ExecutesExpired: (ORDER, 5),
    bugs.AddsEmpty: ("new member", 0),
    bugs.WallClockLease: (CLIENTS, 2),
}


# Two seconds and more, or another one shows nearly the same.
NIGHTLY = {bugs.AppliesTwice, bugs.WallClockLease, bugs.AnswersByIndex}
NIGHTLY |= {bugs.TermNotSaved, bugs.NeverStepsDown}


@pytest.mark.parametrize(
    "bug",
    [pytest.param(b, marks=[pytest.mark.nightly] * (b in NIGHTLY)) for b in BREAKS],
)
def test_without_a_rule_its_property_breaks_in_few_steps(bug):
    words, seed = BREAKS[bug]
    found = hunt(bug, seed)
    assert words in found.why and len(found.schedule) < 60
    make, nodes, clients = found.what
    again = replay(
        make, nodes, clients, found.schedule, monitors=all_monitors(), seed=found.seed
    )
    assert not again.stopped and (words in (CLIENTS, ORDER) or again.why == found.why)


@pytest.mark.nightly
@pytest.mark.parametrize("bug", BREAKS)
@pytest.mark.parametrize("seed", range(3, 6))
def test_with_other_seeds_it_is_found_as_well(bug, seed):
    assert hunt(bug, seed, runs=3000)


@pytest.mark.parametrize("seed", range(5))
def test_a_timer_reset_by_any_message_is_found_by_times_in_a_run_with_few_faults(seed):
    faults, why = bugs.hunt_late_election(bugs.AnyMessageResets, seed)
    assert "should stand by" in why and len(faults) <= 2
    assert not bugs.hunt_late_election(RaftStore, seed, runs=30)


def test_a_timer_reset_by_any_message_allows_no_other_schedule():
    kinds, chance = (RaftStore, bugs.AnyMessageResets), Random(3)
    runs = [step_through(partial(kind, **FAST), 3, [writes(1, 3)]) for kind in kinds]
    for _ in range(300):
        one, other = (sorted(run.steps) for run in runs)
        assert one == other
        step = chance.choice([step for step in one if step.kind != "crash"] or one)
        for run in runs:
            run.take(step)
    assert runs[0].nodes[0].term > 1


def right(runs, **how):
    knobs = {"snapshot_every": 4, "most_sessions": 2} | how.pop("knobs", {})
    nothing = fuzzed(RaftStore, 1, runs, clock_jumps=3, knobs=knobs, **ALL | how)
    assert not nothing and nothing.explored.runs == runs
    return nothing


@pytest.mark.parametrize("lease", [False, True])
def test_the_right_one_stands_random_schedules(lease):
    right(50, lease=lease)
    right(8, lease=lease, check=JUDGED["check"])


def test_the_right_one_stands_random_schedules_while_members_change():
    right(50, **GROWS)


@pytest.mark.nightly
@pytest.mark.parametrize("lease", [False, True])
def test_the_right_one_stands_thousands_of_random_schedules(lease):
    right(4000, lease=lease)
    right(1000, lease=lease, check=JUDGED["check"])
    right(1000, lease=lease, **GROWS)


def test_an_old_entry_on_a_majority_is_not_committed_as_in_figure_8():
    found = hunt(bugs.CommitsOldTerms, 0)

    class OneByOne(RaftStore):
        most_entries = 1

    make, nodes, _ = found.what
    make = type(make)(OneByOne, **make.keywords)
    mended = replay(
        make, nodes, (), found.schedule, monitors=all_monitors(), seed=found.seed
    )
    assert not mended.violated and mended.outcome.nodes[2].role == "leader"
    assert all(node.commit == 0 for node in mended.outcome.nodes)
