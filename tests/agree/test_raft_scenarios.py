"""Each scenario finds the store that lacks its rule, and no fault of the right one."""

import pytest
import raft_bugs as bugs

from distlab.agree.raft import RaftStore
from distlab.agree.raft.scenarios import PROPERTIES, search_scenarios, violated_property
from distlab.errors import InvalidArgument

ELECTION, MATCHING, COMPLETENESS, STATES = PROPERTIES


class VotesTwice(RaftStore):
    """Votes for every candidate of a term."""

    def may_vote(self, candidate, request):
        return request.term == self.term and self.is_up_to_date(request)


class VotesByLength(RaftStore):
    """Compares the lengths of logs, and not their last terms."""

    def is_up_to_date(self, request):
        return request.last >= self.log.last


class AllDiffers(RaftStore):
    """Takes every entry for a conflict."""

    def differs(self, entry):
        return True


class VotesForNone(RaftStore):
    """Refuses every candidate."""

    def may_vote(self, candidate, request):
        return False


WITHOUT = {
    "two candidates": (VotesTwice, ELECTION),
    "an older log": (bugs.VoteForOlderLog, COMPLETENESS),
    "a longer log": (VotesByLength, COMPLETENESS),
    "another log before": (bugs.NoPreviousTest, MATCHING),
    "a late message": (AllDiffers, STATES),
    "figure 8": (bugs.CommitsOldTerms, COMPLETENESS),
    "a deposed leader": (bugs.LocalRead, "none"),
    "a repeated call": (bugs.AppliesTwice, "none"),
}


@pytest.mark.parametrize("scenario", WITHOUT)
def test_a_rule_that_is_taken_out_breaks_its_property_and_put_back_breaks_none(
    scenario,
):
    kind, name = WITHOUT[scenario]
    found = search_scenarios(kind, scenario)
    assert found and violated_property(found) == name
    right = search_scenarios(RaftStore, scenario, within_s=0.2)
    assert not right and violated_property(right) == "none"


def test_the_right_store_breaks_without_its_disk():
    found = search_scenarios(RaftStore, "an empty disk")
    assert violated_property(found) == ELECTION


def test_of_several_scenarios_the_first_that_breaks_is_returned():
    names = "two candidates", "an older log", "two candidates"
    found = search_scenarios(bugs.VoteForOlderLog, *names)
    assert violated_property(found) == COMPLETENESS


def test_a_rule_that_refuses_too_much_is_named_with_the_step_that_cannot_follow():
    with pytest.raises(InvalidArgument, match="node 0 has synced', and none"):
        search_scenarios(VotesForNone, "a longer log")


@pytest.mark.parametrize("names", [(), ("figure 9",)])
def test_scenarios_that_are_none_are_named_with_those_there_are(names):
    with pytest.raises(InvalidArgument, match="'two candidates', 'an older log'"):
        search_scenarios(RaftStore, *names)
