"""A small course in a folder, in which nbgrader grades as the course's config says."""

import json
import os
import shutil
import sys
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader.api import Gradebook
from nbgrader.apps.api import NbGraderAPI
from nbgrader.coursedir import CourseDirectory
from traitlets.config import PyFileConfigLoader

ROOT = Path(__file__).parents[1]
# nbgrader calls alembic by its bare name, as in an activated environment
os.environ["PATH"] = os.pathsep.join(
    [os.path.dirname(sys.executable), os.environ["PATH"]]
)
STEM = "rings"

IMPORTS = """import torch
from distlab.collectives.chunks import split
from distlab.grading import AllReduceSums, ReduceScatterSums, grade

LARGEST, NOTHING = 6, 0"""

STEP_ONE = """def reduce_scatter(comm, chunks):
    n, rank = comm.world_size, comm.rank
    arrived = torch.empty_like(chunks[0])
    for step in range(n - 1):
        outgoing = chunks[(rank - step) % n]
        comm.sendrecv(outgoing, arrived, dst=(rank + 1) % n, src=(rank - 1) % n)
        chunks[(rank - step - 1) % n] += arrived
    return (rank + 1) % n"""

CHECK_ONE = """sizes = [(2, LARGEST)]
### BEGIN HIDDEN TESTS
sizes += [(3, 9)]
### END HIDDEN TESTS
grade(3, [ReduceScatterSums(reduce_scatter, *size) for size in sizes])"""

STEP_TWO = """def ring(comm, tensor):
    n, rank = comm.world_size, comm.rank
    chunks = split(tensor, n)
    to = {"dst": (rank + 1) % n, "src": (rank - 1) % n}
    for step in range(n - 1):
        target = chunks[(rank - step - 1) % n]
        arrived = torch.empty_like(target)
        target += comm.sendrecv(chunks[(rank - step) % n], arrived, **to)
    for step in range(n - 1):
        comm.sendrecv(chunks[(rank + 1 - step) % n], chunks[(rank - step) % n], **to)"""

CHECK_TWO = """sizes = [(2, 4)]
### BEGIN HIDDEN TESTS
sizes += [(3, 10)]
### END HIDDEN TESTS
grade(4, [AllReduceSums(ring, *size) for size in sizes])"""


def _cell(name, source, *, points=None, locked=False, solution=False):
    cell = new_code_cell(source, id=name)
    told = {"schema_version": 3, "grade_id": name, "grade": points is not None}
    told |= {"locked": locked, "solution": solution, "task": False}
    cell.metadata["nbgrader"] = told | ({"points": points} if points else {})
    return cell


def solved():
    """Return the instructor's notebook, with its solution."""
    cells = [
        new_markdown_cell("# Rings", id="title"),
        _cell("imports", IMPORTS, locked=True),
        new_code_cell("tries = 0", id="own"),
        _cell("one", STEP_ONE, solution=True),
        _cell("one-check", CHECK_ONE, points=3, locked=True),
        _cell("two", STEP_TWO, solution=True),
        _cell("two-check", CHECK_TWO, points=4, locked=True),
        new_code_cell("1 + 1", id="last"),
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel})


def cell(notebook, name):
    """Return the cell with this id."""
    return next(each for each in notebook.cells if each.id == name)


class Course:
    """A course with one exercise."""

    def __init__(self, folder, **options):
        self.folder = folder
        shutil.copy(ROOT / "nbgrader_config.py", folder)
        path = folder / "solutions" / STEM / f"{STEM}.ipynb"
        path.parent.mkdir(parents=True)
        nbformat.write(solved(), path)
        config = PyFileConfigLoader("nbgrader_config.py", str(folder)).load_config()
        config.CourseDirectory.root = str(folder)
        config.Marking.update(options)
        self._api = NbGraderAPI(CourseDirectory(config=config), config=config)
        made = self._api.generate_assignment(STEM)
        assert made["success"], made["log"]
        self.number = 0

    def grade(self, notebook, files=()):
        """Return what becomes of a submission; files: (name, text) beside it."""
        self.number += 1
        student = f"student-{self.number}"
        home = self.folder / "submitted" / student / STEM
        home.mkdir(parents=True)
        (home / f"{STEM}.ipynb").write_text(json.dumps(notebook))
        for name, words in files:
            (home / name).write_text(words)
        done = self._api.autograde(STEM, student)
        return Graded(self, student, done)

    def feedback(self, student):
        """Return the page that a student gets."""
        made = self._api.generate_feedback(STEM, student)
        assert made["success"], made["log"]
        folder = self.folder / "feedback" / student / STEM
        return (folder / f"{STEM}.html").read_text()


class Graded:
    """One submission, graded."""

    def __init__(self, course, student, done):
        self.success, self.log = done["success"], done["log"] + str(done.get("error"))
        self.student = student
        path = course.folder / "autograded" / student / STEM / f"{STEM}.ipynb"
        self.notebook = nbformat.read(path, 4) if path.exists() else None
        with Gradebook(f"sqlite:///{course.folder}/gradebook.db") as gradebook:
            found = gradebook.find_submission(STEM, student).notebooks[0]
            self.steps = {grade.name: grade.auto_score for grade in found.grades}
            self.unclear = found.needs_manual_grade
            self.score = found.score

    def outputs(self, name):
        """Return the outputs of the cell with this id or name."""
        for each in self.notebook.cells:
            known = each.metadata.get("nbgrader", {}).get("grade_id")
            if name in (each.get("id"), known):
                return each.outputs
        raise KeyError(name)

    def words(self, name):
        """Return all text that is in a cell's outputs."""
        return json.dumps(self.outputs(name), ensure_ascii=False)
