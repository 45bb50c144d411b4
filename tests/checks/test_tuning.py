"""What the check of exercise 18 shows of a run, and the rule that it compares with."""

import json
from pathlib import Path

from distlab.checks import tuning
from distlab.checks.kit.grading import judge
from distlab.tune import Asha, promote, rung_steps

STEM = "18_tuning_at_scale"
NOTEBOOK = Path(__file__).parents[2] / "solutions" / STEM / f"{STEM}.ipynb"
CASE = (1, 27, 3, 27, 4)


def learner(old="", new=""):
    """Return what a learner's notebook defines, with one text of it changed."""
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    graded = [
        c for c in cells if c["metadata"].get("nbgrader", {}).get("grade") is False
    ]
    source = "\n\n".join("".join(cell["source"]) for cell in graded)
    assert old in source
    space = {"__name__": "__main__"}
    exec(source.replace(old, new), space)
    return space


class Librarys(Asha):
    """The library's ASHA with the arguments and names of the exercise."""

    def __init__(self, trials, least, most, eta):
        super().__init__(trials, rung_steps(least, most, eta), eta)

    @property
    def begun(self):
        return self._begun

    @begun.setter
    def begun(self, begun):
        self._begun = begun

    def top(self, rung):
        return promote(self.losses[rung], self.eta)


def test_the_naive_twin_and_the_librarys_asha_give_out_the_same_jobs():
    for step in (1, 2, 3):
        for sizes in (CASE, (2, 32, 2, 24, 8), (3, 27, 3, 12, 1)):
            plan = tuning._plan(step, *sizes)
            tuning._follow(Librarys, plan, *tuning._logged(Librarys, plan))


def test_a_wrong_job_is_named_by_trial_rung_and_steps_and_the_run_is_drawn():
    space = learner("return max(below, self.saved.get(trial, 0))", "return below")
    verdict = judge(tuning.saves_steps, space["Frugal"], CASE)
    assert "steps" in verdict.found.splitlines()[0] and "rung" in verdict.found
    assert "Random search takes" in verdict.found  # what the mistake costs
    assert "the job begins at another step" in verdict.hints[0] and verdict.drawn()


def test_a_method_that_raises_is_named_with_the_call_that_it_failed_in():
    space = learner("job = trial, rung\n", "job = 1 / (trial - trial), rung\n")
    verdict = judge(tuning.survives, space["Robust"], CASE)
    assert verdict.outcome == "fail" and ": on_lost(" in verdict.found


def test_a_run_that_ends_too_early_proves_nothing(monkeypatch):
    plan = tuning._plan(1, *CASE)
    plan.calls = 9
    monkeypatch.setattr(tuning, "_plan", lambda *sizes: plan)
    assert judge(tuning.promotes, learner()["Asha"], CASE).outcome == "inconclusive"


def test_the_race_shows_what_other_schedulers_train():
    table = tuning.race(learner()["Frugal"]).splitlines()
    assert len(table) == 8 and "synchronous halving" in table[1]
    ratio = float(table[-1].split("takes ")[1].split()[0])
    assert ratio > 3, table
