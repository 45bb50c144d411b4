"""What the check of exercise 18 shows of a run, and the rule that it compares with."""

from functools import partial

import pytest
from learner_cells import learner_of

from distlab.checks import tuning
from distlab.checks.kit.grading import judge
from distlab.tune import Asha, promote, rung_steps

learner = partial(learner_of, "18_tuning_at_scale")
CASE = (1, 27, 3, 27, 4)


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

    @property
    def lost(self):
        return self._lost

    def top(self, rung):
        return promote(self.losses[rung], self.eta)


def test_the_naive_twin_and_the_librarys_asha_give_out_the_same_jobs():
    for step in (1, 2, 3):
        for sizes in (CASE, (2, 32, 2, 24, 8), (3, 27, 3, 12, 1)):
            plan = tuning._plan(step, *sizes)
            tuning._follow(plan, {}, *tuning._logged(Librarys, plan))


def test_a_wrong_job_is_named_by_trial_rung_and_steps_and_the_run_is_drawn():
    start = "max(below, self.saved.get(trial, 0))"
    space = learner(f"return {start}", f"return below if trial > 8 else {start}")
    verdict = judge(tuning.saves_steps, space["Frugal"], CASE)
    assert "steps" in verdict.found.splitlines()[0] and "rung" in verdict.found
    assert "Random search takes" in verdict.found  # what the mistake costs
    assert "the job begins at another step" in verdict.hints[0] and verdict.drawn()


CALL, OLD = "            super()", "self.losses[rung].get(trial"
FIRST = f"if trial not in self.losses[rung]:\n{CALL}"
LOST = "if job in self.lost or trial in self.losses[rung]:"


@pytest.mark.parametrize(
    "check, name, old, new",
    [
        ("promotes", "Asha", "[trial] = loss\n", "[trial] = round(loss, 1)\n"),
        ("promotes", "Asha", "not math.isnan(", "math.isfinite("),
        ("survives", "Robust", FIRST, f"if loss < {OLD}, math.inf):\n{CALL}"),
        ("survives", "Robust", FIRST, f"if math.isnan({OLD}, math.nan)):\n{CALL}"),
        ("survives", "Robust", LOST, "if job in self.lost:"),
        ("saves_steps", "Frugal", "trial not in self.losses[rung]\n", f"not {OLD})\n"),
    ],
)
def test_scenes_refuse_these_answers_whatever_is_drawn(
    check, name, old, new, monkeypatch
):
    monkeypatch.setattr(tuning, "RUNS", 0)
    assert judge(getattr(tuning, check), learner()[name], CASE).outcome == "pass"
    wrong = learner(old, new)[name]
    assert judge(getattr(tuning, check), wrong, CASE).outcome == "fail"


def test_a_method_that_raises_is_named_with_the_call_that_it_failed_in():
    space = learner("job = trial, rung\n", "job = 1 / (trial - trial), rung\n")
    verdict = judge(tuning.survives, space["Robust"], CASE)
    assert verdict.outcome == "fail" and ": on_lost(" in verdict.found


@pytest.mark.parametrize(
    "old, new, answer",
    [
        ("self.losses[rung][trial] = loss\n", "pass\n", "[{}, {}, {}]"),
        ("len(losses) // self.eta]", "max(1, len(losses) // self.eta)]", "[1]"),
        ("return self.begun - 1, 0", "return self.begun, 0", "Job(trial=1"),
    ],
)
def test_a_verdict_has_the_cell_that_repeats_it(old, new, answer):
    space = learner(old, new)
    found = judge(tuning.promotes, space["Asha"], CASE).found
    *statements, last = found.split("in a cell:\n")[1].replace("\n  ", ";").split(";")
    exec("\n".join(each.strip() for each in statements), space)
    assert answer in str(eval(last.strip(), space))


@pytest.mark.parametrize(
    "old, method",
    [
        ("rungs = [least]", "rung_steps"),
        ("losses = self.losses[rung]", "top"),
        ("if self.begun < self.trials:", "choose"),
        ("self.losses[rung][trial] = loss", "on_report"),
    ],
)
def test_a_method_that_is_not_written_is_named(old, method):
    space = learner(old, f'raise NotImplementedError("write this step")\n        {old}')
    assert (
        f"`{method}` is not written"
        in judge(tuning.promotes, space["Asha"], CASE).found
    )


def test_what_is_written_is_judged_before_what_is_not():
    stub = 'raise NotImplementedError("write this step")'
    space = learner("self.losses[rung][trial] = loss", stub)
    space["Asha"].top = lambda self, rung: [*self.losses[rung]]
    assert "`top`: expected" in judge(tuning.promotes, space["Asha"], CASE).found


def test_the_race_of_a_scheduler_that_trains_or_finds_nothing_has_no_ratio():
    start = "return max(below, self.saved.get(trial, 0))"
    table = tuning.race(learner(start, "return self.rungs[rung]")["Frugal"])
    assert "without training a step" in table
    none = learner("if self.begun < self.trials:", "if self.begun < 1:")["Frugal"]
    assert tuning.race(none).count("none found") == 5


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
