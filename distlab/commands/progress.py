"""`distlab progress`: cells run, predictions, steps solved, and the next step."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from distlab.errors import DistlabError
from distlab.learner.progress import progress as find_progress

__all__ = ["progress"]


def progress(
    html: Annotated[
        Path | None, typer.Option(help="Write a page to this file instead.")
    ] = None,
) -> None:
    """Show your progress: cells run, predictions, steps solved, what to do next."""
    page = find_progress()
    if html is None:
        Console(highlight=False).print(page)
        return
    try:
        html.write_text(page.html(), encoding="utf-8")
    except OSError as error:
        raise DistlabError(f"{html} cannot be written: {error.strerror}.")
    print(f"Your progress is in {html}")
