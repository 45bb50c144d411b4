"""Variants of exercises: each contract fits its notebook, and only its own solution."""

import json
from pathlib import Path

import pytest
from soaks import nightly

from distlab.checks.kit.check_proof import notebook_parts, prove_variant
from distlab.checks.kit.contracts import (
    clauses_met,
    contract_in,
    contract_of,
    with_contract,
)
from distlab.errors import CourseUnusable

ROOT = Path(__file__).parents[2]
SOLUTIONS = {
    path.parents[1].name: path.parents[1]
    for path in sorted(ROOT.glob("solutions/*/variants/contracts.toml"))
}


def cells_of(stem):
    text = (SOLUTIONS[stem] / f"{stem}.ipynb").read_text("utf-8")
    return json.loads(text)["cells"]


def test_ten_exercises_have_variants():
    assert len(SOLUTIONS) >= 10


@pytest.mark.parametrize("stem", SOLUTIONS)
def test_each_contract_fits_the_notebook_and_is_found_in_it(stem):
    cells = cells_of(stem)
    choices = contract_of(cells)
    others = choices.all()[1:]
    assert len(others) >= 8 and contract_in(cells) == {}
    answers = notebook_parts(cells)[0]
    said = choices.advice(others[0], others[-1])[0]
    assert clauses_met(said) == choices.clauses(others[-1], others[0])
    for contract in others:
        made = with_contract(SOLUTIONS[stem], cells, contract)
        assert contract_in(made) == contract
        assert notebook_parts(made)[0] != answers, contract
        said = "\n".join("".join(cell["source"]) for cell in made)
        for sentence in choices.sentences(contract):
            assert sentence in said, sentence


@pytest.mark.parametrize("stem", SOLUTIONS)
def test_a_seed_is_never_the_published_contract_and_seeds_differ(stem):
    choices = contract_of(cells_of(stem))
    of_years = [choices.of_seed(stem, f"year-{year}") for year in range(2026, 2066)]
    assert choices.all()[0] not in of_years
    assert of_years == [choices.of_seed(stem, f"year-{y}") for y in range(2026, 2066)]
    assert len({tuple(each.values()) for each in of_years}) >= 5


@pytest.mark.parametrize(
    "stem", [s if s.startswith("19") else nightly(s) for s in SOLUTIONS]
)
@pytest.mark.parametrize("seed", ["spring-2031", nightly("7")])
def test_only_its_own_solution_passes_a_variant(stem, seed):
    proof = prove_variant(SOLUTIONS[stem], seed)
    assert proof.faults == []
    assert len(proof.rows) > 10


def test_a_seed_that_is_none_and_an_exercise_without_variants_are_refused(monkeypatch):
    from distlab.instructor.course import Course
    from distlab.instructor.release import Release

    monkeypatch.chdir(ROOT)
    with pytest.raises(CourseUnusable, match="has no variants"):
        Release(Course(), "02_cap").publish("spring-2031")
    with pytest.raises(CourseUnusable, match="is no seed"):
        Release(Course(), "19_design_a_cluster").publish("no seed!")


def test_the_planner_beside_an_answer_keeps_to_its_contract(capsys):
    stem = "19_design_a_cluster"
    cells = cells_of(stem)
    for contract in contract_of(cells).all():
        known = {}
        for cell in with_contract(SOLUTIONS[stem], cells, contract):
            if cell["cell_type"] == "code" and "grade(" not in "".join(cell["source"]):
                exec("".join(cell["source"]), known)
            if cell["id"] == "step-one-run":
                break
        _, yours, _, _, _, plans, _ = capsys.readouterr().out.split()
        assert float(yours) == pytest.approx(float(plans), rel=0.01), contract


@pytest.mark.parametrize(
    "order", ["own first", nightly("by rank"), nightly("reversed")]
)
def test_the_player_shows_a_right_all_gather_as_complete(order):
    stem, wanted = "09_collectives", ("imports", "all-gather", "step-three-run")
    contract = {"tree": "far first", "direction": "up", "order": order}
    known = {"__name__": "__main__"}
    for cell in with_contract(SOLUTIONS[stem], cells_of(stem), contract):
        if cell["id"] in wanted:
            exec("".join(cell["source"]), known)
    told = known["show"].player(known["mine"])._repr_mimebundle_()["text/plain"]
    assert told.endswith("Every chunk is now complete on every rank.")
