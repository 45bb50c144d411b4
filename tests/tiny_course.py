"""A course with one small exercise, whose submissions take a second to grade."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader.api import Gradebook

# nbgrader calls alembic by its bare name, as in an activated environment
os.environ["PATH"] = os.pathsep.join(
    [str(Path(sys.executable).parent), os.environ["PATH"]]
)
STEM = "99_tiny"
RIGHT = {"one": "def one():\n    return 1", "two": "def two():\n    return 2"}
MARKED = (Path(__file__).parents[1] / "nbgrader_config.py").read_text()
# Cells run as nbgrader runs them: checks that start no worlds need no jails.
CONFIG = (
    MARKED
    + """
c.Autograde.autograde_preprocessors[0] = "nbgrader.preprocessors.Execute"
c.ExecutePreprocessor.timeout = 20
"""
)


def cell(name, source, **kind):
    made = new_code_cell(source, id=name)
    made.metadata.nbgrader = {
        "grade_id": name,
        "grade": False,
        "solution": False,
        "locked": False,
        "task": False,
        "schema_version": 3,
        **kind,
    }
    return made


def notebook(**answers):
    """Return the exercise with answers in its cells `one` and `two`; 7 points."""
    answers = RIGHT | answers
    check = {"grade": True, "locked": True}
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return new_notebook(
        metadata={"kernelspec": kernel, "language_info": {"name": "python"}},
        cells=[
            new_markdown_cell("# Tiny", id="title"),
            cell("imports", "import math", locked=True),
            cell("one", answers["one"], solution=True),
            cell("one-check", "assert one() == 1", points=3, **check),
            cell("two", answers["two"], solution=True),
            cell("two-shown", "two()", locked=True),
            cell("two-check", "float(4 * (two() == 2))", points=4, **check),
        ],
    )


class Course:
    """The course in a folder."""

    def __init__(self, folder: Path, config=CONFIG, solution=None):
        self.folder, self.printed = folder, ""
        solution = solution or notebook()
        for one in solution.cells:
            if one.id in RIGHT:
                one.source = f"### BEGIN SOLUTION\n{one.source}\n### END SOLUTION"
        self.write(f"solutions/{STEM}/{STEM}.ipynb", solution)
        self.write("nbgrader_config.py", config)

    def write(self, path, content):
        """Write bytes, a text, a notebook, or something as JSON."""
        path = self.folder / path
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, dict):
            content = json.dumps(content)
        if isinstance(content, str):
            content = content.encode()
        path.write_bytes(content)

    def submit(self, student, content=None, name=f"{STEM}.ipynb", at=None, stem=STEM):
        folder = f"submitted/{student}/{stem}"
        self.write(f"{folder}/{name}", notebook() if content is None else content)
        if at is not None:
            self.write(f"{folder}/timestamp.txt", at)

    def start(self, *arguments, **how):
        """Start `distlab` in a process group of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "distlab", *map(str, arguments)],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            env=os.environ
            | {"COLUMNS": "200", "PYTHONPATH": os.pathsep.join(sys.path)},
            **how,
        )

    def distlab(self, *arguments):
        """Return the exit status of `distlab`, and everything it printed."""
        started = self.start(*arguments)
        said, _ = started.communicate(timeout=170)
        self.printed += said
        return started.returncode, said

    def scores(self):
        """Return each student's points in the gradebook."""
        with Gradebook(f"sqlite:///{self.folder}/gradebook.db") as gradebook:
            return {
                one.student.id: one.score
                for one in gradebook.assignment_submissions(STEM)
            }

    def graded(self):
        """Return the students in the folder `autograded`, after a look at each."""
        found = set()
        for path in self.folder.glob(f"autograded/*/{STEM}"):
            nbformat.read(path / f"{STEM}.ipynb", 4)
            found.add(path.parent.name)
        return found

    def times_graded(self):
        """Return student -> how often `distlab` said so."""
        return Counter(re.findall(r"^(.+): graded,", self.printed, re.MULTILINE))

    def note(self, student):
        """Return what is noted of a student's submission."""
        path = self.folder / f"autograded/{student}/{STEM}/{STEM}.ipynb"
        notebook = nbformat.read(path, 4)
        return "; ".join(notebook.metadata.distlab.desk.notes)
