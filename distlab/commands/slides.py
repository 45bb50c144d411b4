"""`distlab slides`: a lesson's pictures, predictions and tables as slides."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from distlab.commands.lessons import find_lessons
from distlab.commands.site import execute
from distlab.errors import DistlabError

__all__ = ["slides"]


def slides(
    lesson: Annotated[
        list[str] | None,
        typer.Argument(help="Numbers or stems of lessons; all of them if left out."),
    ] = None,
    to: Annotated[Path, typer.Option(help="Folder for the pages.")] = Path("slides"),
    executed: Annotated[
        Path,
        typer.Option(
            help="Folder where executed lessons are kept; one that would run as it did "
            "is not run again."
        ),
    ] = Path(".distlab/executed"),
) -> None:
    """Make slides of lessons; each is one page that loads nothing from elsewhere.

    Arrow keys turn slides, S opens the speaker's view with the lesson's text as notes.
    """
    import nbformat

    from distlab.instructor.slides import slides_of

    lessons, console = find_lessons(lesson or []), Console(highlight=False)
    if to.exists() and not to.is_dir():
        raise DistlabError(f"{to} is a file; name a folder with --to.")
    execute(lessons, executed.absolute(), console)
    to.mkdir(parents=True, exist_ok=True)
    for path in lessons:
        page = slides_of(nbformat.read(executed / path.name, as_version=4))
        (to / f"{path.stem}.html").write_text(page, encoding="utf-8")
        console.print(f"Open {to / f'{path.stem}.html'}", soft_wrap=True)
