"""One assignment of a course, and everything that becomes of its submissions."""

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import closing

from nbgrader.converters.base import NbGraderException

from distlab.errors import CourseUnusable
from distlab.grading.desk.course import Course
from distlab.grading.desk.handed import Found, Handed, find_handed, timestamp_of
from distlab.grading.desk.marks import Marks, read_marks, steps_of, students_of
from distlab.grading.desk.pool import Done, Pool
from distlab.grading.desk.record import (
    Record,
    fingerprint,
    points_in,
    read_result,
    record_in,
)
from distlab.units import MB

__all__ = ["Desk"]

_HOME = ".distlab/grading"
_LONGEST_LOG = 20 * MB
_WAIT_S = 5.0
_MARGIN_S = 60


class Desk:
    """Grades one assignment. While it is open, nobody else's desk is.

    found: what has been handed in. steps: what is graded. log: what nbgrader said.

    Raises: CourseUnusable, if nbgrader cannot work here, or if another desk is open.
    """

    def __init__(self, course: Course, assignment: str):
        self.course, self.assignment = course, assignment
        self.home = course.root / _HOME / assignment
        self.home.mkdir(parents=True, exist_ok=True)
        self.log = self.home / "log.txt"
        self._lock = _locked(self.home / "lock", assignment)
        course.log_to(self.log)
        try:
            self._tidy()
            course.refuse_without_isolation()
            course.prepare(assignment, f"{_HOME}/{assignment}/aside")
            self._tidy()
            with course.gradebook() as gradebook:
                students = students_of(gradebook)
                self.steps = steps_of(gradebook, assignment)
        except BaseException:
            self.close()
            raise
        self.found: Found = find_handed(
            course.folder("submitted"),
            assignment,
            course.assignments(),
            students,
        )

    def close(self) -> None:
        """Remove what is not whole, and let others in."""
        self._tidy()
        os.close(self._lock)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def marks(self) -> dict[str, Marks]:
        """Return everybody's marks, as the gradebook has them now."""
        with self.course.gradebook() as gradebook:
            return read_marks(gradebook, self.assignment)

    def record(self, student: str) -> Record:
        """Return what else is known of a graded submission."""
        found = [record_in(one) for one in self._results(student).values() if one]
        return found[0] if found else Record()

    def split(self, handed: list[Handed]) -> tuple[list[Handed], list[Handed]]:
        """Return those that are graded, and those still to grade."""
        marks = self.marks()
        graded = [one for one in handed if self._is_graded(one, marks)]
        return graded, [one for one in handed if one not in graded]

    def forget(self, handed: list[Handed]) -> None:
        """Have submissions count as not graded; the gradebook keeps what it has."""
        for one in handed:
            shutil.rmtree(self._result(one.student), ignore_errors=True)

    def grade(
        self, todo: list[Handed], jobs: int
    ) -> Iterator[tuple[Pool, Done | None]]:
        """Grade, and yield whatever ends, and None now and then in between.

        Raises: KeyboardInterrupt, when nothing half done is left.
        """
        settings = {
            "assignment": self.assignment,
            "aside": f"{_HOME}/{self.assignment}/aside",
        }
        with self.log.open("a", encoding="utf-8") as log:
            pool = Pool(
                jobs,
                settings,
                limit_s=self.limit_s(),
                log=lambda text: log.tell() < _LONGEST_LOG and log.write(text),
                is_done=lambda one: self._is_graded(one, self.marks()),
                shared=[self._lock],
            )
            with closing(pool.grade(todo)) as ending:
                for done in ending:
                    yield pool, done

    def write_feedback(self, graded: list[Handed]) -> None:
        """Have nbgrader write the feedback of submissions.

        Raises: CourseUnusable, with nbgrader's words.
        """
        for one in graded:
            try:
                self.course.write_feedback(one.student, self.assignment)
            except NbGraderException as error:
                raise CourseUnusable(
                    f"nbgrader could not write the feedback for {one.student}: {error} "
                    f"{self.log} says more."
                )

    def limit_s(self) -> float:
        """Return how long one submission may take: longer than all its deadlines.

        That is `c.Desk.margin_s` more than the marker's deadline for a whole exercise,
        or else than that of each graded cell together.
        """
        config = self.course.app.config
        if self.course.marking:
            deadlines_s = self.course.marking.exercise_timeout
        else:
            cell_s = config.ExecutePreprocessor.get("timeout", 30)
            deadlines_s = len(self.steps) * config.Execute.get("timeout", cell_s)
        return deadlines_s + config.Desk.get("margin_s", _MARGIN_S)

    def _is_graded(self, handed, marks):
        """Return whether folder and gradebook agree that it is graded as it is now."""
        mine, results = marks.get(handed.student), self._results(handed.student)
        if mine is None or None in results.values():
            return False
        if _newer(handed.folder, self._result(handed.student)):
            return False
        known = {record_in(one).submitted for one in results.values()} - {""}
        if known and known != {fingerprint(handed.folder)}:
            return False
        points = {name: points_in(one) for name, one in results.items()}
        return all(
            points[step.notebook].get(step.name) == score
            for step, score in mine.automatic.items()
            if not step.by_hand
        )

    def _results(self, student):
        """Return the student's autograded notebooks, None where there is none."""
        folder, names = self._result(student), {step.notebook for step in self.steps}
        return {name: read_result(folder / f"{name}.ipynb") for name in sorted(names)}

    def _result(self, student):
        return self.course.folder("autograded", student, self.assignment)

    def _tidy(self):
        shutil.rmtree(self.home / "aside", ignore_errors=True)


def _locked(path, assignment):
    """Return a descriptor that holds the lock, for this process and its workers."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    deadline = time.monotonic() + _WAIT_S  # a dead one's workers need a moment
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        except BlockingIOError:
            if time.monotonic() > deadline:
                os.close(descriptor)
                raise CourseUnusable(
                    f"another `distlab grade` is grading {assignment} in this course. "
                    "Wait for its end, or stop it."
                )
            time.sleep(0.05)


def _newer(submitted, graded):
    """Return nbgrader's rule: was this submitted after what has been graded?"""
    try:
        new, old = timestamp_of(submitted), timestamp_of(graded)
    except ValueError:
        return False
    return new is not None and (old is None or new > old)
