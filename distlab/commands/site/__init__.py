"""`distlab site`: the executed lessons and the documents, as a site of static pages.

lessons ─▶ executed, kept while lesson and library stay as they are ─┐
docs, start page, review, API of what lessons use ───────────────────┼─▶ Sphinx ─▶ site
styles and scripts of the outputs, each page one copy ───────────────┘

It needs no other server, and opens from a folder as from a web server.
"""

import hashlib
import json
import os
import platform
from datetime import date
from importlib import import_module, metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from rich.console import Console

import distlab
from distlab.commands.lessons import find_lessons, lessons_folder
from distlab.commands.run import run_all
from distlab.commands.running.lesson_process import Settings
from distlab.errors import DistlabError
from distlab.launch.machine import usable_cores

__all__ = ["execute", "site"]

_LIBRARY = Path(distlab.__file__).parent
_RECORDED = "distlab_recorded"
_READ = (".py", ".js", ".css", ".txt")


def site(
    lesson: Annotated[
        list[str] | None,
        typer.Argument(help="Numbers or stems of lessons; all of them if left out."),
    ] = None,
    to: Annotated[Path, typer.Option(help="Folder for the site.")] = Path("site"),
    executed: Annotated[
        Path,
        typer.Option(
            help="Folder where executed lessons are kept; one that would run as it did "
            "is not run again."
        ),
    ] = Path(".distlab/executed"),
) -> None:
    """Build the course as a site of static pages.

    The status is 1 if a lesson failed or a link leads nowhere.
    """
    from distlab.commands.site.build import build

    lessons, project = find_lessons(lesson or []), lessons_folder().parent
    if not (project / "docs").is_dir():
        raise DistlabError("the site is made in a clone of the project, from its docs.")
    console = Console(highlight=False)
    execute(lessons, executed.absolute(), console)
    with console.status("Sphinx makes the pages"):
        build([executed / path.name for path in lessons], project, to.absolute())
    console.print(f"Open {to / 'index.html'}", soft_wrap=True)


def execute(lessons: list[Path], folder: Path, console: Console) -> None:
    """Run the lessons that are not in `folder` yet, without a learner's record.

    Raises: DistlabError for lessons that failed.
    """
    keys = {path: _key(path) for path in lessons}
    stale = [p for p in lessons if _recorded(folder / p.name).get("key") != keys[p]]
    if not stale:
        return
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as home:  # without the builder's own predictions
        os.environ["DISTLAB_HOME"] = home
        runs = run_all(stale, folder, console, Settings(pages=False))
    if failed := [run.name for run in runs if run.failure]:
        raise DistlabError(f"nothing was made, since these failed: {', '.join(failed)}")
    for path in stale:
        notebook = json.loads((folder / path.name).read_text("utf-8"))
        notebook["metadata"][_RECORDED] = _circumstances(notebook, keys[path])
        (folder / path.name).write_text(json.dumps(notebook), "utf-8")


def _key(lesson):
    """Return a digest of all inputs of a lesson's outputs, apart from chance."""
    digest = hashlib.sha256(lesson.read_bytes())
    for path in sorted(_LIBRARY.rglob("*.*")):
        if path.suffix in _READ and "commands" not in path.parts:
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _recorded(path):
    """Return the date, system and key of a lesson's execution; {} if there is none."""
    if not path.is_file():
        return {}
    return json.loads(path.read_text("utf-8"))["metadata"].get(_RECORDED, {})


def _circumstances(notebook, key):
    source = "".join(line for cell in notebook["cells"] for line in cell["source"])
    engines = {
        path.stem: import_module(f"distlab.engines.{path.stem}").is_installed()
        for path in sorted((_LIBRARY / "engines").glob("*.py"))
        if f"{path.stem}.is_installed()" in source
    }
    return {
        "key": key,
        "date": f"{date.today():%-d %B %Y}",
        "cores": usable_cores(),
        "system": platform.system(),
        "python": platform.python_version(),
        "torch": metadata.version("torch").partition("+")[0],
        "systems": [name for name, there in engines.items() if there],
        "missing": [name for name, there in engines.items() if not there],
    }
