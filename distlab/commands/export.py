"""`distlab export`: a lesson's training as a script for torchrun, without distlab."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from distlab.commands.exporting.script import script_of
from distlab.commands.exporting.sources import exported_name, notebook_source
from distlab.commands.lessons import find_lessons
from distlab.errors import DistlabError

__all__ = ["export"]


def export(
    lesson: Annotated[str, typer.Argument(help="A number, stem or path of a lesson.")],
    to: Annotated[Path, typer.Option(help="The script to write; - prints it.")] = Path(
        "train.py"
    ),
    force: Annotated[
        bool, typer.Option("--force", help="Replace a file that is there.")
    ] = False,
) -> None:
    """Write a lesson's training as a plain script that runs under torchrun.

    It needs PyTorch and nothing of distlab, so it runs on a cluster as it is.
    """
    path = find_lessons([lesson])[0]
    function = exported_name(path)
    if function is None:
        others = [each.stem for each in find_lessons([]) if exported_name(each)]
        there = f"These have: {', '.join(others)}." if others else "No lesson has yet."
        raise DistlabError(f"{path.stem} has no training to take along. {there}")
    printed = str(to) == "-"
    if not printed:
        _refuse_target(to, force)
    name = "train.py" if printed else to.name
    text = script_of(notebook_source(path), function, path.stem, name)
    if printed:
        typer.echo(text, nl=False)
        return
    to.write_text(text, encoding="utf-8")
    said = f"Wrote {to}. Try it: torchrun --standalone --nproc-per-node 2 {to}"
    Console(highlight=False).print(Text(said), soft_wrap=True)


def _refuse_target(to, force):
    if to.is_dir():
        raise DistlabError(
            f"{to} is a folder. Name the script in it: {to / 'train.py'}"
        )
    if not to.parent.is_dir():
        raise DistlabError(f"there is no folder {to.parent} to write {to.name} into.")
    if to.exists() and not force:
        raise DistlabError(f"{to} is there already; --force replaces it.")
