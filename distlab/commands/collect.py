"""`distlab collect`: submissions from downloaded files."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from distlab.calls.progress import Progress
from distlab.commands.grade import meant
from distlab.errors import CourseUnusable

__all__ = ["collect"]


def collect(
    assignment: Annotated[str, typer.Argument(help="Its number or its name.")],
    folder: Annotated[Path, typer.Argument(help="Where the downloaded files are.")],
    force: Annotated[
        bool, typer.Option("--force", help="Replace what has been submitted before.")
    ] = False,
) -> None:
    """Sort a folder of downloaded notebooks by student, for `distlab grade`.

    A file has its student's name in its own (anna_10_ring_all_reduce.ipynb, or as
    Moodle, Canvas and Blackboard name them), or is in a folder with that name. The
    status is 1 if something could not be collected.
    """
    console = Console(highlight=False)
    with Progress("loading nbgrader"):
        from distlab.instructor.course import Course

        course = Course()
        from distlab.instructor import collecting
        from distlab.instructor.gradebook import students_of
    name = meant(assignment, course.assignments())
    if not folder.is_dir():
        raise CourseUnusable(f"{folder} is not a folder. Unpack what you downloaded.")
    students = set()
    if course.has_gradebook():
        with course.gradebook() as gradebook:
            students = set(students_of(gradebook))
    submitted = course.folder("submitted")
    done = collecting.collect(folder, submitted, name, students, force)
    for student, where in done.taken:
        console.print(Text(f"{student}: {where}"), soft_wrap=True)
    for student, older, newer in done.older:
        said = f"{student}: {older} is left out, since {newer} was submitted later"
        console.print(Text(said, "yellow"), soft_wrap=True)
    said = f"{len(done.taken)} collected"
    if done.same:
        said += f", {len(done.same)} were there already"
    console.print(f"{said}, in {submitted}", soft_wrap=True)
    course.note_names(name, dict(done.taken))
    _compare(done, students, submitted, name, console)
    for trouble in done.troubles:
        said = f"not collected: {trouble.where} ({trouble.student}): {trouble.what}"
        console.print(Text(said, "red"), soft_wrap=True)
    if done.troubles:
        raise typer.Exit(1)


def _compare(done, students, submitted, name, console):
    """Print the students that the gradebook lacks, and those without a submission."""
    strangers = sorted({who for who, _ in done.taken} - students)
    named = {trouble.student for trouble in done.troubles}
    missing = [
        who for who in sorted(students - named) if not (submitted / who / name).is_dir()
    ]
    who = "not among the students of the gradebook (`distlab grade` asks)"
    for said, names in (
        (who, strangers),
        ("nothing from", missing),
    ):
        if students and names:
            console.print(Text(f"{said}: {', '.join(names)}", "yellow"), soft_wrap=True)
