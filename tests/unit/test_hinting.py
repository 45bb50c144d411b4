"""`hint()` says one level after another of the last verdict that did not pass."""

import pytest

from distlab.grading import Verdict, grade, grade_each, hint, hinting

NUDGE = "One share is missing. How many steps does a chunk need to pass every rank?"
SHARED = "It ran for too long. Is there a loop that never ends?"


class Judged:
    """A check that has come to a verdict already."""

    title = "4 ranks"

    def __init__(self, outcome, nudge=""):
        self._verdict = Verdict(outcome, self.title, "what was seen", nudge)

    def judge(self):
        return self._verdict


class AllReduceSums(Judged):
    """One of exercise 10, by its name."""


class SampledLines(Judged):
    """One of exercise 06, by its name."""


@pytest.fixture(autouse=True)
def _nothing_judged(monkeypatch):
    monkeypatch.setattr(hinting, "_state", hinting._State())


@pytest.fixture
def said(capsys):
    """Return what a call prints."""

    def of(function, *args):
        capsys.readouterr()
        function(*args)
        return capsys.readouterr().out.strip()

    return of


def test_before_anything_was_judged_and_after_a_pass_it_says_so(said):
    assert "Nothing has been judged yet" in said(hint)
    grade(1, [Judged("fail", NUDGE)])
    grade(1, [Judged("pass")])
    assert "has passed" in said(hint)


def test_levels_come_one_at_a_time_and_end(said):
    printed = said(grade, 1, [AllReduceSums("fail", NUDGE)])
    assert printed.splitlines()[-3:-1] == ["  hint() tells more.", ""]
    first, last = said(hint), said(hint)
    assert first.startswith("Hint 2 of 2: The table shows whose share")
    assert last.startswith("That was all") and said(hint) == last


def test_what_has_no_more_says_so_and_promises_nothing(said):
    printed = said(grade, 1, [Judged("fail", "A nudge of nobody's.")])
    assert "hint()" not in printed and "no more to say" in said(hint)
    printed = said(grade, 1, [Judged("inconclusive")])
    assert "hint()" not in printed and "no more to say" in said(hint)


def test_a_long_hint_is_in_lines_that_no_notebook_breaks_within_a_word(said):
    words = " ".join(f"word{number}" for number in range(60))
    lines = str(Judged("fail", words).judge()).splitlines()
    assert max(map(len, lines)) <= 84
    assert " ".join(" ".join(lines[2:]).split()) == f"Hint: {words}"
    grade(1, [AllReduceSums("fail", NUDGE)])
    assert max(map(len, said(hint).splitlines())) <= 84


def test_of_several_verdicts_the_last_one_that_failed_counts(said):
    some = [Judged("fail", "A nudge of nobody's."), AllReduceSums("fail", NUDGE)]
    grade_each(3, [*some, Judged("pass")])
    assert said(hint).startswith("Hint 2 of 2: The table shows whose share")


def test_the_file_that_names_the_check_is_asked_first(said):
    told = []
    for check in (AllReduceSums, SampledLines):
        grade(1, [check("fail", SHARED)])
        told.append(said(hint))
    assert told[0] != told[1] and all("Hint 2 of" in words for words in told)


def test_a_nudge_with_something_filled_in_is_found(said):
    nudge = "Rank 3 speaks before any message has reached it. Which one should it "
    grade(1, [Judged("fail", nudge + "wait for?")])
    assert "Hint 2 of" in said(hint)


@pytest.mark.parametrize("nudge, told", [
    ("Rank 3 speaks when it has heard from rank 6, which comes after it. Which rank is "
     "the first of all?",
     "Rank … speaks when it has heard from rank …, which comes after it. Which rank is "
     "the first of all?"),
    ("Nobody sends to ranks 8, 9, 10 and 42 more. In every round each rank that has "
     "the tensor sends it to one that has not; how many rounds until all have it?",
     "Nobody sends to ranks … and … more. In every round each rank that has "
     "the tensor sends it to one that has not; how many rounds until all have it?"),
    ("10.bias is in no bucket, so its gradient never travels.",) * 2,
    ("Return two numbers, the world size and its speed-up: return n, ...",) * 2,
    ("It is of 37 ranks, says a nudge of nobody's.",
     "It is of … ranks, says a nudge of nobody's."),
])  # fmt: skip
def test_a_nudge_for_a_case_that_is_not_shown_has_no_number_of_it(nudge, told):
    assert hinting.general(nudge) == told
