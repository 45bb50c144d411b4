"""`distlab rubric`: the steps of an exercise, and the mistakes that are known."""

from pathlib import Path
from typing import Annotated

import typer

from distlab.commands.lessons import find_exercises

__all__ = ["rubric"]


def rubric(
    exercise: Annotated[
        list[str] | None,
        typer.Argument(help="Numbers or stems of exercises; all of them if left out."),
    ] = None,
    to: Annotated[
        Path | None, typer.Option(help="The page to write; else it is printed.")
    ] = None,
) -> None:
    """Print rubrics of exercises, and for assistants the known mistakes with hints."""
    solutions = find_exercises(exercise or [])
    from distlab.instructor.rubric import page

    text = page(solutions)
    if to is None:
        typer.echo(text, nl=False)
    else:
        to.write_text(text, encoding="utf-8")
