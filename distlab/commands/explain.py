"""`distlab explain`: a diagnosis of a hanging job from its flight recorder dumps."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from distlab.calls.progress import Progress
from distlab.flight import explain as explained

__all__ = ["explain"]


def explain(
    dump: Annotated[
        Path,
        typer.Argument(help="A folder of dumps, one per rank, or folder/prefix."),
    ],
    page: Annotated[
        Path | None, typer.Option(help="An .html file to write, with lanes.")
    ] = None,
) -> None:
    """Find the rank that a job of torch.distributed waits for, from its dumps.

    The status is 2 where a fault was found.
    """
    console = Console()
    with Progress(f"reading {dump}"):
        found = explained(dump)
    verdict, _, rest = str(found).partition("\n")
    console.print(Text(verdict, "bold"), soft_wrap=True)
    console.print(Text(rest), soft_wrap=True)
    if page is not None:
        page.write_text(found.html(), encoding="utf-8")
        console.print(f"\nlanes: {page}", highlight=False)
    if found.faults:
        raise typer.Exit(2)
