"""One of the processes that grade: takes a submission from the desk, and the next one.

    desk ── {"key", "student", "folder", "notes"} ──▶ worker: nbgrader's Autograde
         ◀── {"ended": key, "trouble": "..."} ──

It keeps what it needs from one submission to the next. What nbgrader logs goes the way
of everything it prints.
"""

import json
import logging
import os
import shutil
import tempfile
import time
from functools import cache
from pathlib import Path

import nbformat
from nbgrader import api
from nbgrader.converters import Autograde
from nbgrader.converters.base import NbGraderException

from distlab.grading.desk.course import Course
from distlab.grading.desk.handed import Handed
from distlab.grading.desk.mending import reference_of
from distlab.grading.desk.notes import isolation_of, notes_of
from distlab.grading.desk.reading import Unreadable
from distlab.grading.desk.record import Record, fingerprint, sign
from distlab.grading.desk.staging import lay_out, put_in_place
from distlab.grading.marking.gradebook import hides_between
from distlab.preloads import CHECKING, KERNEL
from distlab.processes import Child, borrow, on_its_own

__all__ = ["main"]


def main(child: Child) -> None:
    """Serve the desk until it is gone, or wants no more: then this is killed."""
    on_its_own()
    # A gradebook is opened eleven times for a submission, and each engine compiles the
    # same queries; one that is disposed of opens its next connection anew.
    api.create_engine = cache(api.create_engine)
    borrow(CHECKING, child.shared[0])
    borrow(KERNEL, child.shared[1])
    worker = _Worker(**json.loads(child.receive()))
    while True:
        job = json.loads(child.receive())
        trouble = worker.grade(job)
        child.send(json.dumps({"ended": job["key"], "trouble": trouble}).encode())


class _One(Autograde):
    """nbgrader's own converter, for one submission that is laid out already."""

    def init_notebooks(self):
        folder = self._format_source(
            self.coursedir.assignment_id, self.coursedir.student_id
        )
        self.assignments = {folder: sorted(map(str, Path(folder).glob("*.ipynb")))}
        self.notebooks = []


class _LastError(logging.Handler):
    """Keeps the last line of the first error that nbgrader logs: it says why."""

    def __init__(self):
        super().__init__(logging.ERROR)
        self.said = ""

    def emit(self, record):
        lines = record.getMessage().strip().splitlines()
        if "Traceback" in lines[0] and not self.said:
            self.said = lines[-1]


class _Worker:
    """The course, opened once, and the assignment that is graded.

    aside: a folder, seen from the course's, for what is not whole yet.
    """

    def __init__(self, assignment, aside):
        self.course = Course()
        self.assignment, self.aside = assignment, aside
        with self.course.gradebook() as gradebook:
            notebooks = gradebook.find_assignment(assignment).notebooks
            hiding = hides_between(self.course.app.config)
            self.references = {
                one.name: reference_of(one, self._source(one.name), hiding)
                for one in notebooks
            }
        self.place = self.course.directory.autograded_directory

    def _source(self, name):
        """Return the instructor's notebook, or None."""
        folder = self.course.folder("source", assignment=self.assignment)
        path = folder / f"{name}.ipynb"
        return json.loads(path.read_bytes()) if path.is_file() else None

    def grade(self, job):
        """Grade one submission; return why it could not be graded, or ""."""
        begun = time.monotonic()
        student, aside = job["student"], f"{self.aside}/{job['key']}"
        handed = Handed(student, Path(job["folder"]), tuple(job["notes"]))
        directory = self.course.directory
        directory.assignment_id, directory.student_id = self.assignment, student
        directory.submitted_directory = f"{aside}/submitted"
        directory.autograded_directory = f"{aside}/autograded"
        shutil.rmtree(self.course.root / aside, ignore_errors=True)
        tempfile.tempdir = str(self.course.root / aside / "temporary")
        os.makedirs(tempfile.tempdir)
        try:
            source = self.course.folder("submitted", student, self.assignment)
            whole = self.course.folder("autograded", student, self.assignment)
            submitted = fingerprint(handed.folder)
            notes = lay_out(handed, self.references, source, directory.max_file_size)
            self._autograde()
            self._sign(whole, notes, submitted, begun)
            directory.autograded_directory = self.place
            put_in_place(
                whole, self.course.folder("autograded", student, self.assignment)
            )
        except (Unreadable, NbGraderException) as error:
            return str(error)
        except OSError as error:
            return f"the disk does not do what it should: {error}"
        finally:
            directory.autograded_directory = self.place
            shutil.rmtree(self.course.root / aside, ignore_errors=True)
        return ""

    def _autograde(self):
        error = _LastError()
        self.course.app.log.addHandler(error)
        try:
            _One(coursedir=self.course.directory, parent=self.course.app).start()
        except NbGraderException as failure:
            raise NbGraderException(
                f"nbgrader could not grade it: {error.said or failure}"
            )
        finally:
            self.course.app.log.removeHandler(error)

    def _sign(self, whole, notes, submitted, begun):
        """Write into the notebooks how their grading went."""
        for name in self.references:
            path = whole / f"{name}.ipynb"
            notebook = nbformat.read(path, 4)
            noted = (*notes, *notes_of(notebook))
            seconds = round(time.monotonic() - begun, 2)
            sign(path, Record(seconds, noted, isolation_of(notebook), submitted))
