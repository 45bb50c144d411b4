"""Exercises come from their solutions, and only right answers get the points."""

import copy
import multiprocessing
import shutil
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import nbformat
import pytest
from courses import commands, empty_gradebook, in_environment, run_distlab
from soaks import nightly

from distlab.checks.kit.answer_variants import read_variants
from distlab.checks.kit.check_proof import faults
from distlab.checks.kit.mutants import survivors

ROOT = Path(__file__).parents[2]
SOLUTIONS = [path for path in sorted((ROOT / "solutions").iterdir()) if path.is_dir()]

each = pytest.mark.parametrize("solution", SOLUTIONS, ids=lambda path: path.name)


@pytest.fixture(scope="module")
def proofs(request):
    """The proofs that are asked for, two at a time: (stem, every step) -> a future."""
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as two:
        asked = [
            (each.callspec.params["solution"], each.callspec.params["every_step"])
            for each in request.session.items
            if "proofs" in each.fixturenames
        ]
        yield {
            (solution.name, every): two.submit(faults, solution, every_step=every)
            for solution, every in asked
        }


every_step = pytest.mark.parametrize(
    "every_step",
    [False, nightly(True)],
    ids=["steps that it changes", "every step"],
)


@each
@every_step
@pytest.mark.timeout(900)
def test_right_answers_get_all_points_and_wrong_ones_the_hint_that_fits(
    solution, every_step, proofs
):
    found = proofs[solution.name, every_step].result()
    assert not found, "\n".join(found)


@each
@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_every_mutant_of_a_solution_loses_points_by_public_cases(solution, monkeypatch):
    monkeypatch.setenv("DISTLAB_CHECK_SECONDS", "10")  # some never end
    assert not "\n".join(map(str, survivors(solution)))


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """What nbgrader makes of all solutions, in a course folder for each: stem."""
    commands()
    courses = tmp_path_factory.mktemp("courses")
    for solution in SOLUTIONS:
        course = courses / solution.name
        shutil.copytree(solution, course / "solutions" / solution.name)
        shutil.copy(ROOT / "nbgrader_config.py", course)
        (course / "exercises").mkdir()
        shutil.copy(ROOT / "exercises" / "AGENTS.md", course / "exercises")
        (course / "gradebook.db").write_bytes(empty_gradebook())
    subprocess.run(
        [sys.executable, "-c", GENERATE, *(each.name for each in SOLUTIONS)],
        cwd=courses,
        env=in_environment(),
        check=True,
    )
    return courses


@each
def test_the_committed_exercise_is_what_nbgrader_generates(solution, released):
    made = released / solution.name / "exercises" / solution.name
    committed = ROOT / "exercises" / solution.name / f"{solution.name}.ipynb"
    assert {path.name for path in made.iterdir()} == {"AGENTS.md", committed.name}
    for path in made.iterdir():
        assert path.read_text() == committed.with_name(path.name).read_text()
    text = committed.read_text()
    assert "SOLUTION" not in text and "HIDDEN" not in text
    assert "write this step" in text


def _answered(solution, cells):
    """Return the solution's notebook with other sources in its solution cells."""
    path = solution / f"{solution.name}.ipynb"
    notebook = copy.deepcopy(nbformat.read(path, as_version=4))
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        cell.source = cells.get(name, cell.source)
    return notebook


OF_EACH_KIND = ("02_cap", "06_mapreduce", "10_ring_all_reduce")
parts = [
    pytest.param(OF_EACH_KIND, id="nodes, workers and ranks"),
    pytest.param(
        [each.name for each in SOLUTIONS if each.name not in OF_EACH_KIND],
        id="all others",
        marks=pytest.mark.nightly,
    ),
]


@pytest.mark.parametrize("stems", parts)
@pytest.mark.timeout(900)
def test_a_right_and_a_wrong_answer_pass_through_the_whole_of_nbgrader(stems, released):
    from nbgrader.api import Gradebook

    expected, found = {}, {}
    for stem in stems:
        for student, cells, points in _answers_to(ROOT / "solutions" / stem):
            folder = released / stem / "submitted" / student / stem
            folder.mkdir(parents=True)
            notebook = _answered(ROOT / "solutions" / stem, cells)
            nbformat.write(notebook, folder / f"{stem}.ipynb")
            expected[stem, student] = points
    for stem in stems:
        run_distlab(released / stem, "grade", stem)
    for stem, student in expected:
        with Gradebook(f"sqlite:///{released}/{stem}/gradebook.db") as gradebook:
            score = gradebook.find_submission(stem, student).score
            found[stem, student] = score
    assert found == expected


def _answers_to(solution):
    """Return the solution and the first wrong answer: student, cells, points."""
    source = nbformat.read(solution / f"{solution.name}.ipynb", as_version=4)
    known = [c for c in source.cells if "nbgrader" in c.metadata]
    answers = {
        c.metadata["nbgrader"]["grade_id"]: c.source
        for c in known
        if c.metadata["nbgrader"]["solution"]
    }
    most = sum(c.metadata["nbgrader"].get("points", 0) for c in known)
    variants = read_variants(solution / "variants", answers)
    wrong = next(each for each in variants if not each.right)
    return ("ada", {}, most), ("bob", wrong.cells, wrong.points)


# In one process, since what it imports with the first takes longer than all the rest.
GENERATE = """
import os, sys
from nbgrader.apps import GenerateAssignmentApp
for course in [os.path.abspath(stem) for stem in sys.argv[1:]]:
    os.chdir(course)
    GenerateAssignmentApp.clear_instance()
    app = GenerateAssignmentApp()
    app.initialize([os.path.basename(course)])
    app.start()
"""
