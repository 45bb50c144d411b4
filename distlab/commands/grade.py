"""`distlab grade`: every submission of an assignment, many at a time."""

import difflib
import sys
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from distlab.calls.progress import Progress
from distlab.commands.lessons import is_number
from distlab.errors import CourseUnusable, UnknownLesson

if TYPE_CHECKING:
    from distlab.instructor.grade import Grading

__all__ = ["grade", "meant"]


def grade(
    assignment: Annotated[str, typer.Argument(help="Its number or its name.")],
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="How many at a time; cores + 1 if left out."),
    ] = None,
    student: Annotated[
        list[str] | None,
        typer.Option(help="Only this student's; may be given more than once."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Grade once more what is graded.")
    ] = False,
    feedback: Annotated[
        bool, typer.Option("--feedback", help="Then write pages, and their archive.")
    ] = False,
    new_students: Annotated[
        bool,
        typer.Option("--new-students", help="Make students of ids that are not known."),
    ] = False,
) -> None:
    """Grade students' submissions; the marks go into nbgrader's gradebook.

    Run it in the course folder. A submission is graded again only if it is submitted
    again, or the check has changed, and an interrupted run goes on by the same command.
    The status is 1 if something could not be graded.
    """
    console = Console(highlight=False)
    grading = opened(assignment)
    for said in grading.contract:
        console.print(Text(said), soft_wrap=True)
    submissions = _of(student, grading)
    for remark in grading.found.remarks:
        console.print(Text(f"note: {remark}", "yellow"), soft_wrap=True)
    known, strangers = _known(grading, submissions, new_students)
    troubles = strangers + _grade(grading, known, jobs, force, console)
    failed = {trouble.student for trouble in troubles}
    graded = [one for one in known if one.student not in failed]
    all_students = () if student else grading.students
    _tell_all(grading, graded, troubles, all_students, console)
    if feedback and graded:
        with Progress("writing feedback"):
            archive = grading.write_feedback(graded)
        said = f"Feedback is in {archive.parent}; for upload, in {archive.name} there"
        console.print(said, soft_wrap=True)
    if troubles:
        raise typer.Exit(1)


def opened(assignment: str) -> "Grading":
    """Return the assignment with this number or name of the course here.

    Raises: UnknownLesson; CourseUnusable.
    """
    with Progress("loading nbgrader"):
        from distlab.instructor.course import Course

        course = Course()
        from distlab.instructor.grade import Grading

        return Grading(course, meant(assignment, course.assignments()))


def _known(grading, submissions, new_students):
    """Return submissions of students, known or made so now, and troubles with others.

    Where no student is known, all who have submitted become students.
    """
    from distlab.instructor.submissions import Trouble

    known, strangers = [], []
    for one in submissions:
        who, where = one.student, f"submitted/{one.folder.parent.name}"
        near = difflib.get_close_matches(who, grading.students, 1)
        meant = f" (is it {near[0]}?)" if near else ""
        asked = f"{who} is not among the students of the gradebook{meant}"
        undo = f"`nbgrader db student remove {who} --force` undoes that"
        if not grading.students or who in grading.students:
            known.append(one)
        elif new_students or (
            sys.stdin.isatty() and typer.confirm(f"{asked}. Make it a student?")
        ):
            known.append(one)
            typer.echo(f"{who} is a new student; {undo}.")
        else:
            what = f"{asked}. Rename the folder, or make a student of it: "
            what += f"--new-students. ({undo}.)"
            strangers.append(Trouble(who, where, what))
    return known, strangers


def meant(word: str, assignments: list[str]) -> str:
    """Return the assignment with this number or name.

    Raises: UnknownLesson, listing the course's assignments.
    """
    found = [name for name in assignments if name == word or is_number(word, name)]
    if word in found:
        return word
    if len(found) == 1:
        return found[0]
    names = "\n".join(f"    {name}" for name in found or assignments)
    if found:
        raise UnknownLesson(f"{word!r} may mean each of these:\n{names}")
    if not assignments:
        raise UnknownLesson("this course has no assignment, neither solution nor mark.")
    raise UnknownLesson(f"there is no assignment {word!r}. These are there:\n{names}")


def _of(students, grading):
    """Return the submissions, those of the named students if there are any."""
    found = grading.found
    if not students:
        if not found.submissions and not found.troubles:
            where = grading.course.folder("submitted", "*", grading.assignment)
            raise CourseUnusable(f"no submission of {grading.assignment}: no {where}")
        return found.submissions
    there = {one.student for one in (*found.submissions, *found.troubles)}
    missing = [name for name in students if name not in there]
    if missing:
        raise UnknownLesson(
            f"no submission of {grading.assignment} by {', '.join(missing)}. These "
            f"have submitted: {', '.join(sorted(there)) or 'none'}"
        )
    found.troubles = [one for one in found.troubles if one.student in students]
    return [one for one in found.submissions if one.student in students]


def _grade(grading: "Grading", submissions, jobs, force, console):
    """Grade under one progress bar; return the submissions that failed to be graded."""
    from distlab.instructor.submissions import Trouble
    from distlab.launch.machine import usable_cores

    if force:
        grading.forget(submissions)
    todo = [one for one in submissions if not grading.is_graded(one)]
    if before := len(submissions) - len(todo):
        console.print(f"{_submissions(before)} graded before")
    troubles, finished = list(grading.found.troubles), 0
    try:
        with Progress() as progress:
            for students, done in grading.grade(todo, jobs or usable_cores() + 1):
                if done is not None:
                    finished += 1
                    if done.trouble:
                        root = grading.course.root
                        where = str(done.submission.folder.relative_to(root))
                        one = Trouble(done.submission.student, where, done.trouble)
                        troubles.append(one)
                progress.count(finished, len(todo), "graded", students)
    except KeyboardInterrupt:
        again = " (without --force)" if force else ""
        console.print(
            f"Interrupted. {finished} of {_submissions(len(todo))} graded; the same "
            f"command{again} goes on with the rest.",
            soft_wrap=True,
        )
        raise typer.Exit(130)
    return troubles


def _tell_all(grading, graded, troubles, students, console):
    from distlab.instructor.summary import rows_of, show_summary

    rows = rows_of(grading, graded, troubles, students)
    show_summary(console, grading.steps, rows)
    if troubles or any(row.notes for row in rows):
        console.print(f"What nbgrader said: {grading.log}", soft_wrap=True)


def _submissions(count):
    return "1 submission" if count == 1 else f"{count} submissions"
