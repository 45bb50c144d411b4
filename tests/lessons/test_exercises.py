"""Exercises come from their solutions, and only right answers get the points."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from light import STEM, light_course

ROOT = Path(__file__).parents[2]
SOLUTIONS = [path for path in sorted((ROOT / "solutions").iterdir()) if path.is_dir()]

stems = pytest.mark.parametrize("solution", SOLUTIONS, ids=lambda path: path.name)


@stems
@pytest.mark.timeout(1500)
def test_right_answers_get_all_points_and_wrong_ones_the_hint_that_fits(
    solution, tables
):
    done = subprocess.run(
        [sys.executable, "-m", "distlab", "prove", solution.name, "--jobs", "2"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=os.environ | {"COLUMNS": "110"},
    )
    tables.append(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr


@stems
def test_the_committed_exercise_is_what_nbgrader_generates(solution, tmp_path):
    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    shutil.copytree(solution, tmp_path / "solutions" / solution.name)
    nbgrader(tmp_path, "generate_assignment", solution.name, "--no-db")
    made = tmp_path / "exercises" / solution.name
    assert [path.name for path in made.iterdir()] == [f"{solution.name}.ipynb"]
    committed = ROOT / "exercises" / solution.name / f"{solution.name}.ipynb"
    assert (made / committed.name).read_text() == committed.read_text()


@stems
def test_the_exercise_holds_no_solution_and_no_hidden_check(solution):
    text = (ROOT / "exercises" / solution.name / f"{solution.name}.ipynb").read_text()
    assert "SOLUTION" not in text and "HIDDEN" not in text
    assert "write this step" in text


def test_nobody_is_given_the_variants(tmp_path):
    solution = light_course(tmp_path)
    nbgrader(tmp_path, "generate_assignment", STEM)
    handed_in = tmp_path / "submitted" / "ada" / STEM
    shutil.copytree(solution, handed_in, ignore=shutil.ignore_patterns("variants"))
    (solution / "data.txt").write_text("a file that belongs to the exercise")
    nbgrader(tmp_path, "autograde", STEM)
    graded = tmp_path / "autograded" / "ada" / STEM
    assert {path.name for path in graded.iterdir()} == {f"{STEM}.ipynb", "data.txt"}


def nbgrader(course, *arguments):
    # nbgrader calls alembic by its bare name, as in an activated environment
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", *arguments],
        cwd=course,
        capture_output=True,
        text=True,
        env=os.environ | {"PATH": path},
    )
    assert done.returncode == 0, done.stdout + done.stderr
