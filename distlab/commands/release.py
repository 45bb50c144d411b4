"""`distlab release`: an exercise for students, as published or as a variant of it."""

from typing import Annotated

import typer

from distlab.calls.progress import Progress
from distlab.commands.grade import meant

__all__ = ["release"]


def release(
    exercise: Annotated[str, typer.Argument(help="Its number or its name.")],
    variant: Annotated[
        str | None,
        typer.Option(
            help="A word or a number, your course's secret: it chooses what the "
            "exercise asks otherwise than the published one.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Also over submissions, and over a solution that you edited.",
        ),
    ] = False,
) -> None:
    """Make the exercise for students; with --variant, its solution and text, too.

    Run it in the course folder. Without --variant it is the published exercise, which
    comes back if it was a variant.
    """
    with Progress("loading nbgrader"):
        from distlab.instructor.course import Course
        from distlab.instructor.release import Release

        course = Course()
    one = Release(course, meant(exercise, course.assignments()))
    before = one.seed
    with Progress("generating the exercise"):
        one.publish(variant, force=force)
    what = f"the variant of seed {variant}" if variant else "as published"
    typer.echo(f"{one.stem}, {what}, is in {course.folder('release')}.")
    for said in one.sentences():
        typer.echo(f"  - {said}")
    if variant and one.same:
        typer.echo(
            f"It is the contract of seed {', '.join(one.same)}, too: solutions to that "
            "one get all points. Another word gives another."
        )
    if before and before not in (variant, *one.same):
        typer.echo(
            f"Until now it was the variant of seed {before}: students who answer that "
            "one will lose points."
        )
    if variant:
        typer.echo(f"Its solution is {one.source}: keep it, and the seed, to yourself.")
