"""A course folder, as nbgrader sees it: settings, gradebook, assignments."""

import glob
import json
import logging
import os
import re
import sys
from datetime import datetime
from pathlib import Path

from nbgrader.api import Gradebook, MissingEntry
from nbgrader.apps import AutogradeApp
from nbgrader.converters import GenerateAssignment, GenerateFeedback
from nbgrader.converters.base import NbGraderException

from distlab.errors import CourseUnusable
from distlab.files import write_whole
from distlab.patience import patience

__all__ = ["Course"]

CONFIG = "nbgrader_config.py"
_BUSY_S = 60


class Course:
    """The course in the working directory.

    app: nbgrader's own, which has read nbgrader_config.py. directory: nbgrader's
    folders. url: the gradebook's, with a time-out for waiting while it is locked.

    Raises: CourseUnusable, if this is no course folder, or its settings are broken.
    """

    def __init__(self):
        here = Path.cwd()
        if not (here / CONFIG).is_file():
            raise CourseUnusable(
                f"{here} is not a course folder: it has no {CONFIG}. Go to the folder "
                "that has it, with `solutions` and `submitted` beside it."
            )
        _find_tools()
        self.app = AutogradeApp()
        try:
            self.app.initialize([])
        except Exception as error:  # whatever a settings file can do wrong
            raise CourseUnusable(f"{CONFIG} cannot be read: {error!r}")
        self.directory = self.app.coursedir
        self.directory.db_url = self.url = _patient(self.directory.db_url)
        self.root = Path(self.directory.root)

    def log_to(self, path: Path) -> None:
        """Redirect nbgrader's log in this process to a file.

        It is appended: earlier lines are about submissions that are not graded again.
        Forks write to the file, too.
        """
        self.app.log.propagate = False
        logging.raiseExceptions = False  # a disk that is full of it is named elsewhere
        for handler in list(self.app.log.handlers):
            self.app.log.removeHandler(handler)
        self.app.log.addHandler(logging.FileHandler(path, encoding="utf-8"))
        self.app.log.info(
            "--- distlab grade, %s", datetime.now().isoformat(" ", "seconds")
        )

    def folder(self, step: str, student: str = ".", assignment: str = ".") -> Path:
        """Return a folder of nbgrader's, such as ("submitted", "anna", "10_ring")."""
        name = getattr(self.directory, f"{step}_directory")
        return Path(
            os.path.normpath(self.directory.format_path(name, student, assignment))
        )

    def gradebook(self) -> Gradebook:
        """Return the open gradebook, which the end of a `with` closes."""
        return Gradebook(self.url, self.directory.course_id)

    def assignments(self) -> list[str]:
        """Return the names of all assignments, in `source` or in the gradebook.

        It does not create a gradebook if there is none.
        """
        sources = self.folder("source")
        names = {
            path.name
            for path in (sources.iterdir() if sources.is_dir() else ())
            if any(path.glob("*.ipynb"))
        }
        if self.has_gradebook():
            with self.gradebook() as gradebook:
                names |= {one.name for one in gradebook.assignments}
        return sorted(names)

    def has_gradebook(self) -> bool:
        """Return True if there is a gradebook; one on a server counts as existing."""
        path = re.sub(r"^sqlite:///|\?.*$", "", self.url)
        return not self.url.startswith("sqlite:///") or Path(path).is_file()

    def prepare(self, assignment: str, aside: str) -> None:
        """Put the assignment into the gradebook, unless it is there.

        aside: a folder, relative to the course's, for the release version that nbgrader
        generates; a version that has been released stays as it is.
        Raises: CourseUnusable, with nbgrader's message.
        """
        try:
            Gradebook(self.url).close()  # it adds tables, which workers would race for
            with self.gradebook() as gradebook:
                try:
                    if gradebook.find_assignment(assignment).notebooks:
                        return
                except MissingEntry:
                    pass
            self._generate(assignment, aside)
        except (NbGraderException, OSError) as error:
            raise CourseUnusable(
                f"nbgrader could not put {assignment} into the gradebook: {error}\n"
                f"`nbgrader generate_assignment {assignment} --force` says more."
            )

    def release(self, assignment: str) -> None:
        """Make the release version and enter it into the gradebook, by nbgrader.

        Raises: CourseUnusable, with nbgrader's message.
        """
        self.directory.assignment_id = assignment
        converter = GenerateAssignment(coursedir=self.directory, parent=self.app)
        converter.force = True
        try:
            converter.start()
        except (NbGraderException, OSError) as error:
            raise CourseUnusable(
                f"nbgrader could not release {assignment}: {error}\n"
                f"`nbgrader generate_assignment {assignment} --force` says more."
            )

    def names_collected(self, assignment: str) -> dict[str, str]:
        """Return student -> the name of the file or folder that was collected."""
        path = self.root / ".distlab" / assignment / "collected.json"
        return json.loads(path.read_bytes()) if path.exists() else {}

    def note_names(self, assignment: str, names: dict[str, str]) -> None:
        """Add names to those that `names_collected` returns."""
        path = self.root / ".distlab" / assignment / "collected.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(self.names_collected(assignment) | names))

    def write_feedback(self, student: str, assignment: str) -> None:
        """Write the feedback for one submission by nbgrader, over an older one.

        Raises: NbGraderException.
        """
        self.directory.assignment_id = assignment
        self.directory.student_id = glob.escape(student)
        feedback = GenerateFeedback(coursedir=self.directory, parent=self.app)
        feedback.force = True
        feedback.start()

    def _generate(self, assignment, aside):
        released = self.directory.release_directory
        self.directory.release_directory = aside
        self.directory.assignment_id = assignment
        try:
            GenerateAssignment(coursedir=self.directory, parent=self.app).start()
        finally:
            self.directory.release_directory = released


def _find_tools():
    """Add this interpreter's folder to PATH, where nbgrader looks for alembic."""
    beside = str(Path(sys.executable).parent)
    if beside not in os.environ["PATH"].split(os.pathsep):
        os.environ["PATH"] = os.pathsep.join([beside, os.environ["PATH"]])


def _patient(url):
    """Return the url with a time-out for waiting while another process writes."""
    if not url.startswith("sqlite:") or "timeout=" in url:
        return url
    return f"{url}{'&' if '?' in url else '?'}timeout={patience(_BUSY_S):g}"
