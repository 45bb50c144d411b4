"""Marks of an assignment in the gradebook: each student's points, step by step."""

from dataclasses import dataclass, field

from nbgrader.api import (
    Assignment,
    Grade,
    Gradebook,
    Notebook,
    Student,
    SubmittedAssignment,
    SubmittedNotebook,
)

__all__ = ["GradedCell", "Marks", "read_marks", "steps_of", "students_of"]


@dataclass(frozen=True)
class GradedCell:
    """A graded cell, and its most points."""

    notebook: str
    name: str
    points: float


@dataclass
class Marks:
    """One student's marks. points: of each step, None if not yet graded.

    penalty: the points deducted for lateness.
    """

    student: str
    late_s: float
    penalty: float = 0.0
    points: dict[GradedCell, float] = field(default_factory=dict)
    to_do_by_hand: list[str] = field(default_factory=list)

    @property
    def total(self) -> float:
        """The sum of all points, less the penalty; at least 0."""
        return max(0.0, sum(self.points.values()) - self.penalty)


def students_of(gradebook: Gradebook) -> dict[str, tuple[str, str, str, str]]:
    """Return id -> first and last name, address, platform's id, "" if not known."""
    kinds = "first_name", "last_name", "email", "lms_user_id"
    found = gradebook.db.query(Student)
    return {one.id: tuple(getattr(one, kind) or "" for kind in kinds) for one in found}


def steps_of(gradebook: Gradebook, assignment: str) -> list[GradedCell]:
    """Return the graded cells of an assignment, in the order they were saved in."""
    return [
        GradedCell(notebook.name, cell.name, cell.max_score)
        for notebook in gradebook.find_assignment(assignment).notebooks
        for cell in (*notebook.grade_cells, *notebook.task_cells)
    ]


def read_marks(gradebook: Gradebook, assignment: str) -> dict[str, Marks]:
    """Return the marks of every student whose submission is in the gradebook."""
    steps = {
        (step.notebook, step.name): step for step in steps_of(gradebook, assignment)
    }
    submissions = (
        gradebook.db.query(SubmittedAssignment)
        .join(Assignment)
        .filter(Assignment.name == assignment)
    )
    marks = {
        one.student_id: Marks(
            one.student_id, one.total_seconds_late, one.late_submission_penalty or 0.0
        )
        for one in submissions
    }
    for student, notebook, grade in _grades(gradebook, assignment):
        step = steps[notebook, grade.cell.name]
        mine = marks[student]
        mine.points[step] = grade.score
        if grade.needs_manual_grade:
            mine.to_do_by_hand.append(step.name)
    return marks


def _grades(gradebook, assignment):
    return (
        gradebook.db.query(SubmittedAssignment.student_id, Notebook.name, Grade)
        .select_from(Grade)
        .join(SubmittedNotebook, SubmittedNotebook.id == Grade.notebook_id)
        .join(Notebook, Notebook.id == SubmittedNotebook.notebook_id)
        .join(
            SubmittedAssignment,
            SubmittedAssignment.id == SubmittedNotebook.assignment_id,
        )
        .join(Assignment, Assignment.id == SubmittedAssignment.assignment_id)
        .filter(Assignment.name == assignment)
    )
