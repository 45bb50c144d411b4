"""Grading of many submissions of one assignment: `distlab grade`.

    submitted/ada/10_ring ──▶ normalized, in a folder aside ──▶ nbgrader's Autograde,
                                                                a process for each
                          ◀── autograded/ada/10_ring, the gradebook ──┘

All processes share one sandbox, which has imported what submissions need. A submission
counts as graded if its autograded notebook holds the fingerprints of the submission and
of the solution with its check, so the same command continues after Ctrl-C, a crash or a
power cut, and grades again what was graded by another check.
"""

import fcntl
import hashlib
import importlib.util
import json
import logging
import multiprocessing
import os
import re
import shutil
import signal
import stat
import sys
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path

import nbformat
from nbgrader.converters import Autograde
from nbgrader.converters.base import NbGraderException

from distlab.checks.kit.contracts import contract_in
from distlab.errors import CourseUnusable, SandboxFailed
from distlab.files import write_whole
from distlab.instructor.autograde import InSandbox, check_names
from distlab.instructor.course import Course
from distlab.instructor.gradebook import (
    GradedCell,
    Marks,
    read_marks,
    steps_of,
    students_of,
)
from distlab.instructor.notebook_choice import choose, plain_files
from distlab.instructor.notebook_reader import Unreadable
from distlab.instructor.release import Release
from distlab.instructor.submissions import Submission, find_submissions, timestamp_of
from distlab.patience import patience
from distlab.processes.child import die_with

__all__ = ["GradedSubmission", "Grading"]

_MARGIN_S, _LOOK_S = 60, 0.2
_LARGEST_FILE_BYTES = 50 * 10**6


@dataclass(frozen=True)
class GradedSubmission:
    """A submission after grading. trouble: why it could not be graded, or ""."""

    submission: Submission
    trouble: str


@dataclass
class Grading:
    """One assignment of the course in the working directory, open for grading.

    found: the submissions. steps: the graded cells. log: the file of nbgrader's log.
    contract: sentences on the variant that is graded, none for the published exercise.
    students: those in the gradebook before, see `students_of`.

    Raises: CourseUnusable if nbgrader cannot work here, or it is open elsewhere.
    """

    course: Course
    assignment: str
    steps: list[GradedCell] = field(init=False)

    def __post_init__(self):
        self._home = self.course.root / ".distlab" / self.assignment
        self._home.mkdir(parents=True, exist_ok=True)
        self._lock = _locked(self._home / "lock", self.assignment)
        self._aside = self._home / "aside"
        shutil.rmtree(self._aside, ignore_errors=True)
        self.log = self._home / "log.txt"
        self.course.log_to(self.log)
        aside = os.path.relpath(self._aside, self.course.root)
        self.course.prepare(self.assignment, aside)
        shutil.rmtree(self._aside, ignore_errors=True)
        with self.course.gradebook() as gradebook:
            self.students = students_of(gradebook)
            self.steps = steps_of(gradebook, self.assignment)
        submitted, known = self.course.folder("submitted"), self.course.assignments()
        students = set(self.students)
        self.found = find_submissions(submitted, self.assignment, known, students)
        self._graded_by = self._fingerprint_of_check()
        self.contract = self._read_contract()

    def release(self) -> None:
        """Close the lock's file in a fork; the parent keeps the lock."""
        self._lock.close()

    def is_graded(self, submission: Submission) -> bool:
        """Return True if its present files have been graded by the present check."""
        facts = self.facts(submission.student)
        known = facts.get("submitted"), facts.get("graded_by")
        return known == (_fingerprint(submission.folder), self._graded_by)

    def _read_contract(self):
        """Return sentences on the released variant; [] if it is none.

        Raises: CourseUnusable if the solution is no longer that variant's, or is the
            published one, and most submissions answer a variant.
        """
        release = Release(self.course, self.assignment)
        release.check_seed()
        if not release.contract and self.assignment in release.with_variants():
            self._require_no_variants()
        if not release.seed:
            return []
        return [f"The variant of seed {release.seed}:", *release.sentences()]

    def _require_no_variants(self):
        found = [self._contract_of(one.folder) for one in self.found.submissions]
        answered = [contract for contract in found if contract]
        if 2 * len(answered) > len(found):
            raise CourseUnusable(
                f"{len(answered)} of {len(found)} submissions of {self.assignment} "
                f"answer a variant, {answered[0]}, and this folder has the published "
                f"exercise. Release the course's seed here as well: `distlab release "
                f"{self.assignment} --variant WORD`."
            )

    def _contract_of(self, folder):
        """Return the contract in a submission, {} if it is the published one's."""
        try:
            chosen = self._choose(folder).values()
        except Unreadable:
            return {}
        return next((c for book, _ in chosen if (c := contract_in(book["cells"]))), {})

    def forget(self, submissions: list[Submission]) -> None:
        """Make submissions count as not graded until they are graded again."""
        for one in submissions:
            self._note(one.student, submitted="")

    def status(self, submission: Submission) -> tuple[str, str]:
        """Return (what a table says of a submission, the reason if it has no marks)."""
        facts = self.facts(submission.student)
        by_nbgrader = facts and "submitted" not in facts
        if by_nbgrader or self.is_graded(submission):
            return "untouched" if facts.get("untouched") else "graded", ""
        try:
            self._choose(submission.folder)
        except Unreadable as error:
            return "could not be graded", str(error)
        return "to grade again" if facts else "not graded yet", ""

    def facts(self, student: str) -> dict:
        """Return distlab's metadata of an autograded notebook; {} without one."""
        folder = self.course.folder("autograded", student, self.assignment)
        for path in folder.glob("*.ipynb"):
            try:
                return json.loads(path.read_bytes())["metadata"]["distlab"]
            except (OSError, ValueError, KeyError):
                return {}
        return {}

    def marks(self) -> dict[str, Marks]:
        """Return every student's marks in the gradebook."""
        with self.course.gradebook() as gradebook:
            return read_marks(gradebook, self.assignment)

    def write_feedback(self, graded: list[Submission]) -> Path:
        """Write the feedback of submissions, by nbgrader; return an archive of all.

        A page in it is named as what was collected, by which Moodle and Canvas know
        whose it is.

        Raises: CourseUnusable, with nbgrader's message.
        """
        for one in graded:
            try:
                with _LastError(self.course.app.log) as said:
                    self.course.write_feedback(one.student, self.assignment)
            except NbGraderException as error:
                raise CourseUnusable(
                    f"nbgrader could not write the feedback for {one.student}: "
                    f"{said.last or error}\n{self.log} says more."
                )
        path = self.course.folder("feedback") / f"{self.assignment}.zip"
        names = self.course.names_collected(self.assignment)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for one in filter(self.is_graded, self.found.submissions):
                name = names.get(one.student, f"{one.student}_{self.assignment}.ipynb")
                place = self.course.folder("feedback", one.student, self.assignment)
                for page in place.glob("*.html"):
                    inside = re.sub(r"(?i)(\.(ipynb|zip))+$", ".html", name)
                    inside += f"/{page.name}" * (inside == name)  # it was a folder
                    archive.write(page, inside)
        return path

    def grade(
        self, todo: list[Submission], jobs: int
    ) -> Iterator[tuple[list, GradedSubmission | None]]:
        """Grade; yield (students in flight, GradedSubmission), with None every 0.2 s.

        Raises: CourseUnusable if there can be no sandbox.
        """
        settings = InSandbox(parent=self.course.app)
        try:
            InSandbox.sandbox = settings.open_sandbox(self._source().cells)
        except SandboxFailed as error:
            raise CourseUnusable(str(error)) from None
        waiting, busy = list(todo), {}
        limit_s = patience(settings.exercise_timeout + _MARGIN_S)
        try:
            while waiting or busy:
                while waiting and len(busy) < jobs:
                    one = _Job(self, waiting.pop(0))
                    busy[one.process.sentinel] = one
                yield [job.submission.student for job in busy.values()], None
                ended = wait([*busy], _LOOK_S)
                for sentinel, job in list(busy.items()):
                    if sentinel in ended or job.seconds() > limit_s:
                        del busy[sentinel]
                        students = [each.submission.student for each in busy.values()]
                        yield students, job.done(limit_s)
        finally:
            for job in busy.values():
                job.kill()
            InSandbox.sandbox.close()
            InSandbox.sandbox = None
            shutil.rmtree(self._aside, ignore_errors=True)

    def _source(self):
        folder = self.course.folder("source", assignment=self.assignment)
        paths = sorted(folder.glob("*.ipynb"))
        if not paths:
            raise CourseUnusable(f"there is no notebook in {folder}.")
        return nbformat.read(paths[0], as_version=4)

    def grade_one(self, submission: Submission) -> str:
        """Grade one submission, in a process of its own; return "" or the trouble."""
        directory, student = self.course.directory, submission.student
        aside = self._aside / hashlib.sha256(student.encode()).hexdigest()[:16]
        place = aside / "submitted" / student / self.assignment
        shutil.rmtree(aside, ignore_errors=True)
        place.mkdir(parents=True)
        try:
            submitted = _fingerprint(submission.folder)
            notes = self._lay_out(submission, place)
            directory.assignment_id, directory.student_id = self.assignment, student
            directory.submitted_directory = os.path.relpath(
                aside / "submitted", self.course.root
            )
            with _LastError(self.course.app.log) as said:
                converter = _OneSubmission(coursedir=directory, parent=self.course.app)
                converter.force = True
                converter.start()
            facts = {"submitted": submitted, "graded_by": self._graded_by}
            self._note(student, notes, **facts)
        except NbGraderException as failure:
            return f"nbgrader could not grade it: {said.last or failure}"
        except Unreadable as error:
            return str(error)
        except OSError as error:
            return f"a file could not be read or written: {error}"
        finally:
            shutil.rmtree(aside, ignore_errors=True)
        return ""

    def _choose(self, folder):
        """Return name -> (notebook, notes) of the assignment's notebooks."""
        known = {step.name for step in self.steps}
        names = sorted({step.notebook for step in self.steps})
        return {name: choose(folder, name, known) for name in names}

    def _lay_out(self, submission, place):
        """Copy a submission, its notebook as UTF-8, format 4; return notes on it."""
        notes = list(submission.notes)
        for name, (notebook, odd) in self._choose(submission.folder).items():
            notes += odd
            (place / f"{name}.ipynb").write_text(json.dumps(notebook), "utf-8")
        files, left_out = plain_files(submission.folder)
        for path in files:
            inner = path.relative_to(submission.folder)
            if path.suffix.lower() in (".ipynb", ".zip"):
                continue
            if path.stat().st_size > _LARGEST_FILE_BYTES:
                left_out.append(f"{inner} left out: it is too large")
                continue
            if str(inner) == "timestamp.txt":
                try:
                    timestamp_of(submission.folder)
                except ValueError:
                    notes.append("timestamp.txt holds no time: it counts as in time")
                    continue
            (place / inner).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place / inner)
        return notes + left_out

    def _fingerprint_of_check(self):
        """Return a digest of the instructor's notebook and of the checks it imports."""
        modules = map(importlib.util.find_spec, check_names(self._source().cells))
        folder = self.course.folder("source", assignment=self.assignment)
        paths = [*sorted(folder.glob("*.ipynb")), *(Path(m.origin) for m in modules)]
        whole = b"".join(path.read_bytes() for path in paths)
        return hashlib.sha256(whole).hexdigest()

    def _note(self, student, notes=(), **changes):
        """Write notes and other facts into a student's autograded notebooks."""
        folder = self.course.folder("autograded", student, self.assignment)
        for path in folder.glob("*.ipynb"):
            notebook = json.loads(path.read_bytes())
            facts = notebook["metadata"].setdefault("distlab", {})
            facts["notes"] = [*notes, *facts.get("notes", [])]
            facts |= changes
            text = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
            write_whole(path, text, mode=stat.S_IMODE(path.stat().st_mode))


def _locked(path, assignment):
    """Return an open file that this process holds a lock on."""
    file = path.open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise CourseUnusable(
            f"another `distlab grade` is grading {assignment} in this course. Wait "
            "for its end, or stop it."
        ) from None
    return file


class _OneSubmission(Autograde):
    """nbgrader's own converter, for one submission whose files are already copied."""

    def init_notebooks(self):
        where = self.coursedir.assignment_id, self.coursedir.student_id
        folder = self._format_source(*where)
        self.assignments = {folder: sorted(map(str, Path(folder).glob("*.ipynb")))}
        self.notebooks = []


class _Job:
    """One submission that is graded in a fork of this process."""

    def __init__(self, grading, submission):
        self.submission, self._since = submission, time.monotonic()
        context = multiprocessing.get_context("fork")
        self._receiver, sender = context.Pipe(duplex=False)
        work = grading, submission, sender, os.getpid()
        self.process = context.Process(target=_in_a_fork, args=work, daemon=True)
        self.process.start()
        sender.close()

    def seconds(self):
        return time.monotonic() - self._since

    def done(self, limit_s):
        if self.process.is_alive() and self.seconds() > limit_s:
            self.kill()
            trouble = f"grading took more than {limit_s:.0f} s, and was stopped."
        else:
            self.process.join()
            trouble = f"its grader ended with status {self.process.exitcode}."
            if self._receiver.poll():
                trouble = self._receiver.recv()
        self._receiver.close()
        return GradedSubmission(self.submission, trouble)

    def kill(self):
        self.process.kill()
        self.process.join()


def _in_a_fork(grading, submission, sender, parent):
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    die_with(parent)
    grading.release()
    with grading.log.open("a", encoding="utf-8") as log:
        for descriptor in (1, 2):
            os.dup2(log.fileno(), descriptor)
    try:
        trouble = grading.grade_one(submission)
    except BaseException as error:
        logging.getLogger(__name__).exception("grading %s", submission.student)
        trouble = f"{type(error).__name__}: {error}"
    sender.send(trouble)
    sys.stdout.flush()
    os._exit(0)


def _fingerprint(folder):
    """Return a SHA-256 digest of a submission's files, without timestamp.txt."""
    digest = hashlib.sha256()
    for path in sorted(plain_files(folder)[0]):
        if path.name != "timestamp.txt":
            digest.update(str(path.relative_to(folder)).encode("utf-8", "replace"))
            digest.update(path.read_bytes())
    return digest.hexdigest()


class _LastError(logging.Handler):
    """A handler, during a body, for the last line of the first traceback in a log."""

    last = ""

    def __init__(self, log):
        super().__init__(logging.ERROR)
        self._log = log

    def __enter__(self):
        self._log.addHandler(self)
        return self

    def __exit__(self, *_):
        self._log.removeHandler(self)

    def emit(self, record):
        lines = record.getMessage().strip().splitlines()
        if lines and "Traceback" in lines[0] and not self.last:
            self.last = lines[-1]
