"""What the check of exercise 08 says of a stream operator, and how it measures time."""

from functools import partial

import pytest
from learner_cells import learner_of

from distlab.checks import streams
from distlab.checks.kit.grading import judge

learner = partial(learner_of, "08_streams")


def verdict_on(check, kind, case, old="", new=""):
    return judge(check, learner(old, new)[kind], (case,))


def test_a_script_is_shown_with_what_was_sent_and_what_should_have_been():
    wrong = "if source in self.arrived:", "if False:"
    verdict = verdict_on(streams.aligns, "Aligned", "scripts", *wrong)
    assert verdict.found.splitlines()[1:] == [
        "    1a 1| 1b 2c 2| deploy 1 end",
        "    expected  | a c",
        "    yours     | a b c",
    ]


def test_an_operator_that_raises_is_told_with_its_script():
    wrong = "min(self.marks.values())", "min(self.windows)"
    verdict = verdict_on(streams.aligns, "Aligned", "scripts", *wrong)
    assert "AttributeError" in verdict.found and "Script: 1a 2b" in verdict.found


@pytest.mark.parametrize(
    "check, kind, case, old, new, words",
    [
        ("aligns", "Aligned", "two inputs", "closed = min(", "closed = max(",
         "committed"),
        ("aligns", "Aligned", "sources crash", "yield Send(COORDINATOR, Running",
         "self.attempt = 1\n        yield Send(COORDINATOR, Running", "does not end"),
        ("survives", "Durable", "kills", "yield Send(COORDINATOR, Ack(*token))",
         "yield from ()", "checkpoint 0 is the last"),
        ("saves_time_and_space", "Frugal", "disk space", "if n >= checkpoint}",
         "if n}", "after 100"),
    ],
)  # fmt: skip
def test_a_job_shows_what_scripts_may_have_missed(check, kind, case, old, new, words):
    verdict = verdict_on(getattr(streams, check), kind, case, old, new)
    assert verdict.outcome == "fail" and words in verdict.found and verdict.drawn()


def test_a_kill_is_named_with_its_time_and_with_what_the_disk_lost():
    late = "self.snapshots = saved.get", "self.snapshots = {} and saved.get"
    verdict = verdict_on(streams.survives, "Durable", "kills", *late)
    assert "node 3 is the operator\n    Crash(node=3, at_s=" in verdict.found


def test_an_input_is_blocked_from_its_barrier_until_the_last_one():
    fast = [(1.0, 10), (2.0, None), (3.0, 20), (9.0, 30)]
    slow = [(4.0, 5), (5.0, None), (6.0, 7)]
    due = streams._due([fast, slow], 0.5)
    assert due == [[(1.5, 10), (5.5, 20), (9.5, 30)], [(4.5, 5), (6.5, 7)]]


def test_of_two_barriers_of_one_input_the_second_blocks_it_again():
    fast = [(1.0, None), (2.0, 10), (3.0, None), (4.0, 20)]
    slow = [(5.0, None), (7.0, None)]
    assert streams._due([fast, slow], 0.0)[0] == [(5.0, 10), (7.0, 20)]
