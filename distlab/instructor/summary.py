"""The summary of a grading: a table of students, notes, and failed submissions."""

import csv
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from distlab.instructor.gradebook import GradedCell, Marks
from distlab.instructor.submissions import Trouble

__all__ = ["StudentRow", "rows_of", "show_summary", "write_csv"]


@dataclass(frozen=True)
class StudentRow:
    """A student's line. points: of each step, None where the gradebook has none."""

    student: str
    points: list[float | None]
    total: float
    late: str
    notes: tuple[str, ...]
    sandbox: str


def rows_of(
    facts: dict[str, dict], steps: list[GradedCell], marks: dict[str, Marks]
) -> list[StudentRow]:
    """Return the rows of the students in `facts`, sorted by name.

    facts: student -> distlab's metadata of the autograded notebook.
    """
    rows = []
    for student in sorted(facts, key=str.casefold):
        mine, known = marks[student], facts[student]
        by_hand = [f"{name} is for you to grade" for name in mine.to_do_by_hand]
        rows.append(
            StudentRow(
                student,
                [mine.points.get(step) for step in steps],
                mine.total,
                readable_delay(mine.late_s) if mine.late_s else "",
                (*known.get("notes", ()), *by_hand),
                known.get("sandbox", ""),
            )
        )
    return rows


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
    troubles: list[Trouble],
) -> None:
    """Print the table, the notes, and the failed submissions with advice.

    Notes are sentences, for which a column would be too narrow.
    """
    if rows:
        console.print(_table(steps, rows))
        for how in dict.fromkeys(row.sandbox for row in rows if row.sandbox):
            console.print(Text(f"Graded {how}."), soft_wrap=True)
    noted = [row for row in rows if row.notes]
    if noted:
        console.print("Notes:", style="bold")
        for row in noted:
            _print(console, row.student, "; ".join(row.notes))
    if troubles:
        count = len(troubles)
        what = "1 submission" if count == 1 else f"{count} submissions"
        console.print(Text(f"{what} could not be graded:", "bold red"))
        for trouble in sorted(troubles, key=lambda t: (t.student.casefold(), t.where)):
            _print(console, trouble.student, f"{trouble.where}: {trouble.what}")


def write_csv(
    path: Path, steps: list[GradedCell], rows: list[StudentRow], troubles: list[Trouble]
) -> None:
    """Write the table; a student not graded has no points, and the reason as note.

    Raises: OSError.
    """
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        names = [step.name for step in steps]
        head = ["student", *names, "total", "late", "note", "sandbox"]
        table.writerow(head)
        for row in rows:
            notes = "; ".join(row.notes)
            points = [*row.points, row.total]
            rest = [row.late, notes, row.sandbox]
            table.writerow([_safe(row.student), *points, *map(_safe, rest)])
        for trouble in troubles:
            blank = [""] * (len(steps) + 2)
            said = f"not graded: {trouble.where}: {trouble.what}"
            table.writerow([_safe(trouble.student), *blank, said, ""])


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
    """Return the table, narrow enough that only a student's name may be wrapped."""
    table = Table()
    table.add_column("student", overflow="fold")
    for step in steps:
        words = step.name.removesuffix("-check").replace("-", "\n")
        title = f"{words}\nof {step.points:g}"
        table.add_column(title, justify="right", no_wrap=True)
    most = sum(step.points for step in steps)
    table.add_column(f"total\nof {most:g}", justify="right", no_wrap=True)
    late = any(row.late for row in rows)
    if late:
        table.add_column("late", no_wrap=True)
    for row in rows:
        points = ["" if p is None else f"{p:g}" for p in row.points]
        style = "green" if row.total >= most else ""
        cells = [Text(row.student), *points, Text(f"{row.total:g}", style)]
        cells += [Text(row.late)] * late
        table.add_row(*cells)
    return table
