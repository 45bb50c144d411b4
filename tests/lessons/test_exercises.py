"""Exercises come from their solutions, and only right answers get the points.

Beside each exercise's tests lies a folder of variants: right ones written differently,
and wrong ones, each with the points it should get and the hint it should meet.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VARIANTS = Path(__file__).parent / "variants"
STEMS = [path.name for path in sorted((ROOT / "solutions").iterdir()) if path.is_dir()]


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
    return done


def variants_of(stem):
    """Return name -> source of each variant, the stub and the solution included."""
    return {
        path.stem: path.read_text() for path in sorted((VARIANTS / stem).glob("*.py"))
    }


def with_answers(exercise, source):
    """Return the released notebook with a variant's code in its solution cells."""
    notebook = json.loads(exercise.read_text())
    answers = [
        cell
        for cell in notebook["cells"]
        if cell["metadata"].get("nbgrader", {}).get("solution")
    ]
    answers[0]["source"] = source
    for cell in answers[1:]:
        cell["source"] = "pass"
    return notebook


class Course:
    """A folder in which nbgrader grades some submissions of one exercise."""

    def __init__(self, folder, stem):
        self.folder, self.stem = folder, stem
        folder.mkdir()
        shutil.copy(ROOT / "nbgrader_config.py", folder)
        shutil.copytree(ROOT / "solutions" / stem, folder / "solutions" / stem)
        nbgrader(folder, "generate_assignment", stem)
        self.released = folder / "exercises" / stem / f"{stem}.ipynb"
        self.submitted = []

    def submit(self, name, notebook):
        folder = self.folder / "submitted" / name / self.stem
        folder.mkdir(parents=True)
        (folder / f"{self.stem}.ipynb").write_text(json.dumps(notebook))
        self.submitted.append(name)

    def autograde(self):
        # A kernel's ports are chosen before it takes them, and somebody may be faster.
        # The second time nbgrader grades what it has not graded yet.
        try:
            nbgrader(self.folder, "autograde", self.stem)
        except AssertionError:
            nbgrader(self.folder, "autograde", self.stem)

    def score(self, name):
        """Return points and most points."""
        from nbgrader.api import Gradebook

        with Gradebook(f"sqlite:///{self.folder}/gradebook.db") as gradebook:
            submission = gradebook.find_submission(self.stem, name)
            return submission.score, submission.max_score

    def words(self, name):
        """Return everything that the graded cells printed, white space folded."""
        folder = self.folder / "autograded" / name / self.stem
        printed = [
            "".join(output.get("text", ""))
            for cell in json.loads((folder / f"{self.stem}.ipynb").read_text())["cells"]
            if cell["metadata"].get("nbgrader", {}).get("grade")
            for output in cell["outputs"]
        ]
        return " ".join(" ".join(printed).split())


@pytest.fixture(scope="module", params=STEMS)
def graded(request, tmp_path_factory):
    """Autograde the solution, the untouched exercise and every variant.

    Two courses at a time, since most of a submission's time is its kernel's start.
    Returns the stem, and for each submission the course that graded it.
    """
    stem = request.param
    home = tmp_path_factory.mktemp("courses")
    courses = [Course(home / side, stem) for side in ("left", "right")]
    released, solved = courses[0].released, ROOT / "solutions" / stem / f"{stem}.ipynb"
    submissions = {
        "untouched": json.loads(released.read_text()),
        "solution": json.loads(solved.read_text()),
    }
    for name, source in variants_of(stem).items():
        submissions[name] = with_answers(released, source)
    for course, (name, notebook) in zip(cycle(courses), submissions.items()):
        course.submit(name, notebook)
    with ThreadPoolExecutor() as pool:
        list(pool.map(Course.autograde, courses))
    return stem, {name: course for course in courses for name in course.submitted}


@pytest.mark.parametrize("stem", STEMS)
def test_the_committed_exercise_is_what_nbgrader_generates(stem, tmp_path):
    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    shutil.copytree(ROOT / "solutions" / stem, tmp_path / "solutions" / stem)
    nbgrader(tmp_path, "generate_assignment", stem, "--no-db")
    made = tmp_path / "exercises" / stem / f"{stem}.ipynb"
    assert made.read_text() == (ROOT / "exercises" / stem / f"{stem}.ipynb").read_text()


@pytest.mark.parametrize("stem", STEMS)
def test_the_exercise_holds_no_solution_and_no_hidden_check(stem):
    text = (ROOT / "exercises" / stem / f"{stem}.ipynb").read_text()
    assert "SOLUTION" not in text and "HIDDEN" not in text
    assert "write this step" in text


@pytest.mark.timeout(900)
def test_the_solution_gets_full_points_and_the_untouched_exercise_none(graded):
    _, course_of = graded
    assert course_of["solution"].score("solution") == (10.0, 10.0)
    assert course_of["untouched"].score("untouched") == (0.0, 10.0)


@pytest.mark.timeout(900)
def test_every_variant_gets_its_points_and_the_hint_that_fits(graded):
    stem, course_of = graded
    sources = variants_of(stem)
    right = [name for name in sources if name.startswith("right")]
    wrong = [name for name in sources if name.startswith("wrong")]
    assert len(right) >= 2 and len(wrong) >= 5
    for name, source in sources.items():
        points = float(re.search(r"^POINTS = (.*)$", source, re.MULTILINE).group(1))
        hint = re.search(r'^HINT = "(.*)"$', source, re.MULTILINE).group(1)
        assert (points == 10.0) == (name in right), name
        assert (hint == "") == (name in right), name
        assert course_of[name].score(name)[0] == points, name
        assert hint in course_of[name].words(name), name
