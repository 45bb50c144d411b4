"""A small course in a folder: one exercise of two steps, about rings."""

import atexit
import copy
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from nbformat import v4

ROOT = Path(__file__).parents[1]
STEM = "10_rings"

IMPORTS = """import torch

from distlab.checks import grade, hint
from distlab.checks import ring_all_reduce as checks
from distlab.collectives.chunks import split"""
ONE = """def reduce_scatter(comm, chunks, ring):
    ### BEGIN SOLUTION
    n, place = len(ring), ring.index(comm.rank)
    to = {"dst": ring[(place + 1) % n], "src": ring[(place - 1) % n]}
    for step in range(n - 1):
        target = chunks[(place - step - 1) % n]
        arrived = torch.empty_like(target)
        target += comm.sendrecv(chunks[(place - step) % n], arrived, **to)
    return (place + 1) % n
    ### END SOLUTION"""
TWO = """def all_reduce(comm, tensor, ring):
    ### BEGIN SOLUTION
    chunks, n = split(tensor, len(ring)), len(ring)
    complete = reduce_scatter(comm, chunks, ring)
    place = ring.index(comm.rank)
    to = {"dst": ring[(place + 1) % n], "src": ring[(place - 1) % n]}
    for step in range(n - 1):
        target = chunks[(complete - step - 1) % n]
        comm.sendrecv(chunks[(complete - step) % n], target, **to)
    ### END SOLUTION"""
CHECK = """hidden = []
### BEGIN HIDDEN TESTS
hidden = [{hidden}]
### END HIDDEN TESTS
grade({points}, checks.{check}, {check}, [{cases}], hidden)"""
CHECK_ONE = CHECK.format(
    points=3, check="reduce_scatter", cases="(2, 2, 6)", hidden="(3, 3, 9)"
)
CHECK_TWO = CHECK.format(
    points=4, check="all_reduce", cases="(2, 2, 4)", hidden="(3, 3, 10)"
)
STUB = 'raise NotImplementedError("write this step")'


def cell(name, source, *, points=None, solution=False):
    """Return a code cell that nbgrader knows: a grade cell if it has points."""
    about = {"grade_id": name, "schema_version": 3, "task": False}
    about |= {"solution": solution, "locked": not solution}
    about |= {"grade": points is not None}
    about |= {"points": points} if points is not None else {}
    return v4.new_code_cell(source, metadata={"nbgrader": about}, id=name)


def exercise():
    """Return the instructor's notebook."""
    cells = [
        v4.new_markdown_cell("# Rings", id="title"),
        cell("imports", IMPORTS),
        cell("one", ONE, solution=True),
        cell("one-check", CHECK_ONE, points=3),
        v4.new_code_cell("print('a look at', split(torch.arange(4), 2))", id="look"),
        cell("two", TWO, solution=True),
        cell("two-check", CHECK_TWO, points=4),
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})


def in_environment():
    """Return os.environ as where ours is activated: nbgrader calls alembic by name."""
    beside = str(Path(sys.executable).parent)
    return os.environ | {"PATH": os.pathsep.join([beside, os.environ["PATH"]])}


@functools.cache
def commands():
    """Return a process that has imported what grading needs: it forks for a command."""
    piped = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    forks = subprocess.Popen([sys.executable, "-c", FORKS], text=True, **piped)
    atexit.register(forks.communicate)
    return forks


# For each line of its input, which is a command, its place and the file of its output.
FORKS = """
import json, os, sys
import distlab.__main__, distlab.commands.grade, distlab.instructor.grade
for line in sys.stdin:
    sys.argv, place, environment, output = json.loads(line)
    child = os.fork()
    if child == 0:
        os.chdir(place)
        os.environ.clear()
        os.environ.update(environment)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT), 1)
        os.dup2(1, 2)
        sys.exit(distlab.__main__.main())
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def run_distlab(place, *arguments, check=True):
    """Run `distlab ...` where `place` is; return what it printed."""
    environment = in_environment() | {"COLUMNS": "150"}
    forks, output = commands(), Path(tempfile.mkdtemp(), "output")
    command = ["distlab", *arguments], str(place), environment, str(output)
    print(json.dumps(command), file=forks.stdin, flush=True)
    status = int(forks.stdout.readline())
    printed = output.read_text()
    shutil.rmtree(output.parent)
    assert not check or status == 0, printed
    return printed


@functools.cache
def empty_gradebook():
    """Return a gradebook's file; to make it takes nbgrader seconds, for alembic."""
    code = "from nbgrader.api import Gradebook; Gradebook('sqlite:///gradebook.db')"
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", code]
        subprocess.run(command, cwd=folder, env=in_environment(), check=True)
        return Path(folder, "gradebook.db").read_bytes()


class SmallCourse:
    """A course folder with that exercise, and what students submit to it."""

    def __init__(self, folder: Path):
        self.folder = folder
        shutil.copy(ROOT / "nbgrader_config.py", folder)
        home = folder / "solutions" / STEM
        home.mkdir(parents=True)
        (home / f"{STEM}.ipynb").write_text(json.dumps(exercise()))
        (folder / "gradebook.db").write_bytes(empty_gradebook())

    def answer(self, **sources):
        """Return the solution as a submission, with other sources in some cells."""
        notebook = copy.deepcopy(exercise())
        for each in notebook.cells:
            each.source = sources.get(each.id.replace("-", "_"), each.source)
        return notebook

    def one(self):
        """Return the right answer to step one."""
        return ONE

    def submit(self, student, notebook=None, name=f"{STEM}.ipynb", **sources):
        """Put a submission where `distlab grade` looks for it; return its folder."""
        place = self.folder / "submitted" / student / STEM
        place.mkdir(parents=True, exist_ok=True)
        data = self.answer(**sources) if notebook is None else notebook
        data = data if isinstance(data, bytes) else json.dumps(data).encode()
        (place / name).write_bytes(data)
        return place

    def environment(self):
        """Return the environment of a command."""
        return in_environment() | {"COLUMNS": "150"}

    def begin_grading(self, **how):
        """Start `distlab grade`; return the process once it has graded something."""
        command = [sys.executable, "-m", "distlab", "grade", STEM]
        place = {"cwd": self.folder, "env": self.environment()}
        running = subprocess.Popen(command, **place, **how)
        graded = self.folder / "autograded"
        while not graded.exists() and running.poll() is None:
            time.sleep(0.02)
        return running

    def run(self, *command, check=True, timeout=300):
        """Run `distlab ...` or `nbgrader ...` in the course; return what it printed."""
        done = subprocess.run(
            [sys.executable, "-m", *command],
            cwd=self.folder,
            capture_output=True,
            text=True,
            env=self.environment(),
            timeout=timeout,
        )
        said = done.stdout + done.stderr
        assert not check or done.returncode == 0, said
        return said

    def grade(self, *arguments, check=True):
        """Grade everything that was submitted; return what was printed."""
        return run_distlab(self.folder, "grade", STEM, *arguments, check=check)

    def graded(self, student):
        """Return a student's autograded notebook."""
        path = self.folder / "autograded" / student / STEM / f"{STEM}.ipynb"
        return json.loads(path.read_text())

    def points(self, student):
        """Return the points of both steps, as nbgrader's gradebook has them."""
        from nbgrader.api import Gradebook

        with Gradebook(f"sqlite:///{self.folder}/gradebook.db") as gradebook:
            found = gradebook.find_submission_notebook(STEM, STEM, student)
            scores = {grade.name: grade.score for grade in found.grades}
        return scores["one-check"], scores["two-check"]

    def shown(self, student, name):
        """Return the text that a cell of an autograded notebook shows."""
        cells = self.graded(student)["cells"]
        outputs = next(c for c in cells if _name(c) == name)["outputs"]
        parts = [o.get("text") or o.get("data", {}).get("text/plain") for o in outputs]
        parts += [o.get("evalue", "") for o in outputs]
        return "".join("".join(part or "") for part in parts)


def _name(cell):
    return cell["metadata"].get("nbgrader", {}).get("grade_id", cell.get("id"))
