"""The summary of a grading: a table of students, notes, and failed submissions."""

import csv
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from distlab.instructor.gradebook import GradedCell
from distlab.instructor.submissions import Submission, Trouble, timestamp_of

if TYPE_CHECKING:
    from distlab.instructor.grade import Grading

__all__ = ["StudentRow", "rows_of", "show_summary", "write_csv", "write_for"]

GRADED = "graded", "untouched"


@dataclass(frozen=True)
class StudentRow:
    """A student's line. points: of each step, None where there is none; then no total.

    status: "graded", "untouched", "could not be graded", "not graded yet", "to grade
    again", or "nothing came". at: when it was submitted, in UTC, "" if nothing says so.
    """

    student: str
    status: str
    points: list[float | None]
    total: float | None
    at: str = ""
    late: str = ""
    notes: tuple[str, ...] = ()
    sandbox: str = ""


def rows_of(
    grading: "Grading",
    submissions: list[Submission],
    troubles: list[Trouble],
    students: Iterable[str],
) -> list[StudentRow]:
    """Return the rows of submissions, troubles and students, sorted by name."""
    marks, none = grading.marks(), [None] * len(grading.steps)
    rows = {
        student: StudentRow(student, "nothing came", none, None) for student in students
    }
    for one in submissions:
        student, (status, why) = one.student, grading.status(one)
        rows[student] = StudentRow(
            student, status, none, None, _time_of(one), "", (why,)
        )
        if status in GRADED and student in marks:
            facts, mine = grading.facts(student), marks[student]
            by_hand = [f"{name} is for you to grade" for name in mine.to_do_by_hand]
            rows[student] = replace(
                rows[student],
                points=[mine.points.get(step) for step in grading.steps],
                total=mine.total,
                late=readable_delay(mine.late_s) if mine.late_s else "",
                notes=(*facts.get("notes", ()), *by_hand),
                sandbox=facts.get("sandbox", ""),
            )
    for one in troubles:
        row = rows.get(one.student) or StudentRow(one.student, "", none, None)
        said = f"{one.where}: {one.what}"
        rows[one.student] = replace(row, status="could not be graded", notes=(said,))
    return sorted(rows.values(), key=lambda row: row.student.casefold())


def readable_delay(seconds: float) -> str:
    """Return a delay in days, hours and minutes: "2 d 3 h"."""
    minutes = max(1, round(seconds / 60))
    days, hours = minutes // 1440, minutes // 60 % 24
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes % 60} min" if hours else f"{minutes} min"


def show_summary(
    console: Console,
    steps: list[GradedCell],
    rows: list[StudentRow],
) -> None:
    """Print the table, the notes, and the failed submissions with advice.

    Notes are sentences, for which a column would be too narrow.
    """
    if rows:
        console.print(_table(steps, rows))
        for how in dict.fromkeys(row.sandbox for row in rows if row.sandbox):
            console.print(Text(f"Graded {how}."), soft_wrap=True)
    noted = [row for row in rows if row.notes and row.status in GRADED]
    if noted:
        console.print("Notes:", style="bold")
        for row in noted:
            _print(console, row.student, "; ".join(row.notes))
    if failed := [row for row in rows if row.status == "could not be graded"]:
        count = len(failed)
        what = "1 submission" if count == 1 else f"{count} submissions"
        console.print(Text(f"{what} could not be graded:", "bold red"))
        for row in failed:
            _print(console, row.student, "; ".join(row.notes))


def write_csv(path: Path, steps: list[GradedCell], rows: list[StudentRow]) -> None:
    """Write the table; a student not graded has no points, and the reason as note.

    Raises: OSError.
    """
    after = ["total", "status", "submitted (UTC)", "late", "note", "sandbox"]
    lines = [["student", *(step.name for step in steps), *after]]
    for row in rows:
        rest = [row.status, row.at, row.late, "; ".join(row.notes), row.sandbox]
        lines.append([row.student, *row.points, row.total, *rest])
    _write(path, lines)


def write_for(
    platform: str, path: Path, assignment: str, grading: "Grading", rows
) -> None:
    """Write the columns that a platform's import of grades takes: Canvas or Moodle.

    Who is not graded has no points there, which leaves their grade as it is.
    Source: canvas-lms, lib/gradebook_importer.rb; docs.moodle.org, Grade import.

    Raises: OSError.
    """
    known = [row for row in rows if row.student in grading.students]
    known = [(row, *grading.students[row.student]) for row in known]
    if platform == "canvas":
        most = sum(step.points for step in grading.steps)
        lines = [["Student", "ID", "SIS Login ID", "Section", assignment]]
        lines.append(["    Points Possible", "", "", "", most])
        for row, first, last, _, number in known:
            name = f"{last}, {first}".strip(", ") or row.student
            lines.append([name, number, row.student, "", row.total])
    else:
        lines = [["First name", "Last name", "ID", "Email address", assignment]]
        for row, first, last, email, _ in known:
            lines.append([first, last, row.student, email, row.total])
    _write(path, lines)


def _write(path, lines):
    """Write the lines; None becomes an empty cell, and no cell is a formula."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([*map(_safe, line)] for line in lines)


def _time_of(submission):
    try:
        at = timestamp_of(submission.folder)
    except ValueError:
        return ""
    return f"{at:%Y-%m-%d %H:%M}" if at else ""


def _print(console, student, said):
    line = Text(student, "bold").append(f"  {said}", "not bold")
    if console.is_terminal:
        console.print(Padding(line, (0, 0, 0, 2)))
    else:  # a file or pipe gets whole lines
        console.print(Text("  ").append_text(line), soft_wrap=True)


def _safe(value):
    """Return a value, escaped if a spreadsheet would evaluate it as a formula."""
    risky = isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t"))
    return f"'{value}" if risky else value


def _table(steps, rows):
    """Return the table, narrow enough that only names and states may be wrapped."""
    table = Table()
    table.add_column("student", overflow="fold")
    for step in steps:
        words = step.name.removesuffix("-check").replace("-", "\n")
        title = f"{words}\nof {step.points:g}"
        table.add_column(title, justify="right", no_wrap=True)
    most = sum(step.points for step in steps)
    table.add_column(f"total\nof {most:g}", justify="right", no_wrap=True)
    plain = all(row.status == "graded" for row in rows)
    further = [("status", [] if plain else [row.status for row in rows])]
    further.append(("submitted\n(UTC)", [row.at for row in rows]))
    further.append(("late", [row.late for row in rows]))
    further = [(title, words) for title, words in further if any(words)]
    for title, _ in further:
        table.add_column(title)
    for number, row in enumerate(rows):
        points = ["" if p is None else f"{p:g}" for p in (*row.points, row.total)]
        style = "green" if row.total == most else ""
        cells = [Text(row.student), *points[:-1], Text(points[-1], style)]
        table.add_row(*cells, *(Text(words[number]) for _, words in further))
    return table
