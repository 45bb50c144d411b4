"""`distlab marks`: each student's marks and status, also for Canvas and Moodle."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from distlab.commands.grade import opened

__all__ = ["marks"]


class Platform(StrEnum):
    """A learning platform whose import of grades is known here."""

    CANVAS = "canvas"
    MOODLE = "moodle"


def marks(
    assignment: Annotated[str, typer.Argument(help="Its number or its name.")],
    platform: Annotated[
        Platform | None, typer.Option("--for", help="Write what this one imports.")
    ] = None,
    to: Annotated[
        Path | None, typer.Option(help="The file; without --for, a table of all.")
    ] = None,
) -> None:
    """Show every student's points, with who was not graded and why; grade nothing."""
    from distlab.instructor import summary

    grading, console = opened(assignment), Console(highlight=False)
    found = grading.found
    rows = summary.rows_of(grading, found.submissions, found.troubles, grading.students)
    summary.show_summary(console, grading.steps, rows)
    name = grading.assignment
    if platform:
        to = to or Path(f"{name}-{platform}.csv")
        summary.write_for(platform, to, name, grading, rows)
        blank = sum(row.total is None for row in rows)
        said = f"{to} is for {platform.title()}: {len(rows) - blank} with points"
        console.print(
            f"{said}, {blank} without, which stay as they are", soft_wrap=True
        )
    elif to:
        summary.write_csv(to, grading.steps, rows)
