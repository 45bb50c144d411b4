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


class VotesForShorter(RaftStore):
    """Compares the last terms of logs, and not their lengths."""

    def is_up_to_date(self, request):
        return request.last_term >= self.log.term(self.log.last)


class TakesGaps(RaftStore):
    """Takes entries also after the end of its log."""

    def fits(self, previous, previous_term):
        return self.log.term(previous) in (None, previous_term)


class AllDiffers(RaftStore):
    """Takes every entry for a conflict."""

    def differs(self, entry):
        return True


WITHOUT = {
    "two candidates": (VotesTwice, ELECTION),
    "an older log": (bugs.VoteForOlderLog, COMPLETENESS),
    "a longer log": (VotesByLength, COMPLETENESS),
    "a shorter log": (VotesForShorter, COMPLETENESS),
    "a gap": (TakesGaps, STATES),
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


def of_last_index(store, previous, previous_term):
    return store.log.last == previous and store.log.term(previous) == previous_term


def only_missing(store, entry):
    return store.log.term(entry.index) is None


def only_in_a_first_term(store, index):
    return store.log.term(1) == store.term


REFUSALS = {
    "fits, of a longer log": (
        "fits",
        of_last_index,
        r"conflict: .*fits\(0, 0\) .*False",
    ),
    "differs, of a conflict": ("differs", only_missing, "conflict: .*RaftEntry.*False"),
    "may_commit": ("may_commit", only_in_a_first_term, r"append ended .*_commit\(4\)"),
    "may_vote": ("may_vote", lambda *_: None, "may_vote.* None, .*True; is a `return`"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_rule_that_refuses_too_much_is_named_with_its_answer(case):
    rule, answer, words = REFUSALS[case]
    with pytest.raises(InvalidArgument, match=words):
        search_scenarios(type("Refuses", (RaftStore,), {rule: answer}), "a conflict")


def test_a_rule_that_raises_is_named_where_the_run_without_faults_has_not_asked_it():
    class ReadsBehindTheEnd(RaftStore):
        def fits(self, previous, previous_term):
            terms = [entry.term for entry in self.log.entries]
            return not previous or terms[previous - 1] == previous_term

    found = search_scenarios(ReadsBehindTheEnd, "a gap")
    assert "fits(1, 1) raised IndexError" in found.why


@pytest.mark.parametrize("names", [(), ("figure 9",)])
def test_scenarios_that_are_none_are_named_with_those_there_are(names):
    with pytest.raises(InvalidArgument, match="'two candidates', 'an older log'"):
        search_scenarios(RaftStore, *names)
