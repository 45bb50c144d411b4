"""Grade some answers to one exercise, in a course that exists only for that."""

import contextlib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from distlab.grading.desk.course import CONFIG, Course
from distlab.grading.desk.desk import Desk
from distlab.grading.desk.handed import Handed
from distlab.grading.desk.notes import busy_of
from distlab.grading.desk.record import read_result, record_in

__all__ = ["Graded", "graded"]


@dataclass(frozen=True)
class Graded:
    """What became of a submission.

    said: everything that its graded cells show. trouble: why it could not be graded.
    notes: what stopped its cells. busy_s: step -> processor time of its checks.
    """

    points: float
    said: str = ""
    seconds: float = 0.0
    trouble: str = ""
    notes: tuple[str, ...] = ()
    busy_s: dict[str, float] = field(default_factory=dict)


def graded(
    solution: Path,
    submissions: Callable[[dict], dict[str, dict]],
    jobs: int = 1,
    show: Callable[[int, int, list[str]], None] = lambda *_: None,
) -> tuple[float, dict[str, Graded]]:
    """Return an exercise's most points, and what each submission to it got, by name.

    solution: the folder of the exercise's solution, two folders below the course's.
    submissions: given the released notebook, returns name -> notebook.
    show: told how many are graded, of how many, and whose turn it is.

    The working directory is another one meanwhile: nbgrader goes by it.

    Raises: CourseUnusable with what nbgrader said, if it cannot go on.
    """
    stem = solution.name
    with TemporaryDirectory(prefix="distlab-prove-") as home, contextlib.chdir(home):
        shutil.copy(solution.parents[1] / CONFIG, home)
        own = shutil.ignore_patterns("variants")
        shutil.copytree(solution, Path(home, "solutions", stem), ignore=own)
        course = Course()
        course.log_to(Path(home, "log.txt"))
        course.prepare(stem, "exercises")
        released = json.loads(
            Path(home, "exercises", stem, f"{stem}.ipynb").read_text()
        )
        handed = [
            _hand_in(course.folder("submitted", name, stem), name, notebook)
            for name, notebook in submissions(released).items()
        ]
        troubles = {}
        with Desk(course, stem) as desk:
            for pool, done in desk.grade(handed, jobs):
                if done is not None:
                    troubles[done.handed.student] = done.trouble
                show(len(troubles), len(handed), pool.under_way())
            marks, most = desk.marks(), sum(step.points for step in desk.steps)
        return most, {
            name: _graded(course, stem, name, marks, trouble)
            for name, trouble in troubles.items()
        }


def _hand_in(folder, name, notebook):
    folder.mkdir(parents=True)
    (folder / f"{folder.name}.ipynb").write_text(json.dumps(notebook))
    return Handed(name, folder)


def _graded(course, stem, name, marks, trouble):
    if trouble:
        return Graded(0.0, trouble=trouble)
    path = course.folder("autograded", name, stem) / f"{stem}.ipynb"
    notebook = read_result(path)
    record = record_in(notebook)
    return Graded(
        marks[name].total,
        _said(notebook),
        record.seconds,
        notes=record.notes,
        busy_s=busy_of(notebook),
    )


def _said(notebook):
    """Return the text of what the graded cells showed."""
    return "\n".join(
        "".join(output.get("text") or output.get("data", {}).get("text/plain", ""))
        for cell in notebook["cells"]
        if cell["metadata"].get("nbgrader", {}).get("grade")
        for output in cell["outputs"]
    )
