"""`distlab run`: lessons from the first cell to the last, without a browser."""

import json
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from distlab.calls.progress import Progress
from distlab.commands.lessons import find_lessons, lesson_parameters
from distlab.commands.running.lesson_process import LessonProcesses, LessonRun, Settings
from distlab.errors import DistlabError
from distlab.launch.machine import available_bytes, usable_cores
from distlab.units import MB

__all__ = ["run", "run_all"]

_SHOWN_LINES = 40
_PARAMETERS = typer.Option(
    help="JSON file: the stem of a lesson -> values for its cell `parameters`."
)
_FORKED = typer.Option(
    "--forked",
    help="Start kernels as forks of a process that has imported torch: faster, but an "
    "import that a lesson lacks is not missed.",
)
_LESSON_BYTES = 1200 * MB  # memory of one lesson, with all its processes


def run(
    lesson: Annotated[
        list[str] | None,
        typer.Argument(
            help="Numbers, stems or paths of lessons; all of them if left out."
        ),
    ] = None,
    to: Annotated[Path, typer.Option(help="Folder for what they show.")] = Path("runs"),
    cell_timeout: Annotated[
        int, typer.Option(min=1, help="Seconds that a cell may take.")
    ] = 300,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many run at a time; 2 if cores and memory are there for it.",
        ),
    ] = None,
    parameters: Annotated[Path | None, _PARAMETERS] = None,
    forked: Annotated[bool, _FORKED] = False,
    pages: Annotated[bool, typer.Option(help="Write each as a web page, too.")] = True,
) -> None:
    """Run lessons; keep each as a notebook and as a web page.

    The status is 1 if a lesson failed.
    """
    lessons = find_lessons(lesson or [])
    _refuse_overwriting(lessons, to)
    to.mkdir(parents=True, exist_ok=True)
    console = Console(highlight=False)
    values = _read_parameters(parameters, lessons)
    settings = Settings(cell_timeout, values, forked=forked, pages=pages)
    runs = run_all(lessons, to.absolute(), console, settings, jobs)
    console.print(_table(runs))
    if pages:
        beside = f"The executed notebook (.ipynb) is beside each page, in {to}"
        console.print(beside, soft_wrap=True)
    if any(each.failure for each in runs):
        raise typer.Exit(1)


def _refuse_overwriting(lessons, folder):
    """Raise DistlabError if a result would replace a lesson, or another result."""
    for name, count in Counter(path.name for path in lessons).items():
        if count > 1:
            raise DistlabError(
                f"{count} of the notebooks are named {name}, and their results would "
                "overwrite each other. Run them one by one, each with its own --to."
            )
    for path in lessons:
        if path.parent.resolve() == folder.resolve():
            raise DistlabError(
                f"the result of {path.name} would overwrite the lesson itself in "
                f"{folder}. Name another folder with --to."
            )


def _read_parameters(path, lessons):
    """Return the values of the lessons that run: stem -> name -> value.

    Raises: DistlabError if the file can't be read, or a lesson lacks a parameter.
    """
    if path is None:
        return {}
    try:
        values = json.loads(path.read_text("utf-8"))
        values = {each.stem: dict(values.get(each.stem, {})) for each in lessons}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise DistlabError(
            f"{path} gives no parameters: {error}. It must be JSON such as "
            '{"11_data_parallel": {"steps": 5}}.'
        )
    for each in lessons:
        known = lesson_parameters(each)
        for name in values[each.stem]:
            if name not in known:
                raise DistlabError(
                    f"{each.stem} has no parameter {name!r}; its cell `parameters` "
                    f"defines {', '.join(known) or 'none'}."
                )
    return values


def _affordable_jobs():
    """Return 2 if there are cores and memory for two lessons at a time, else 1."""
    free = available_bytes() >= 2 * _LESSON_BYTES
    return 2 if usable_cores() >= 2 and free else 1


def run_all(
    lessons: list[Path],
    folder: Path,
    console: Console,
    settings: Settings,
    jobs: int | None = None,
) -> list[LessonRun]:
    """Run the lessons under one progress line, and report each as it ends.

    Raises: typer.Exit after Ctrl-C; as `LessonProcesses.run`.
    """
    processes = LessonProcesses(min(jobs or _affordable_jobs(), len(lessons)))
    try:
        with Progress("loading papermill"):
            from distlab.commands.running.execute import count_cells
        cells = {path: count_cells(path) for path in lessons}
        started, ended = set(), dict.fromkeys(lessons, 0)  # cells of each
        with Progress() as progress:

            def lesson_ran(lesson, ran):
                if ran is not None:
                    ended[lesson] = cells[lesson]
                    Progress.make_room()
                    _tell(console, ran)
                elif lesson in started:
                    ended[lesson] += 1
                started.add(lesson)
                stems = [path.stem for path in processes.in_flight]
                progress.count(sum(ended.values()), sum(cells.values()), "cells", stems)

            return processes.run(lessons, folder, settings, lesson_ran)
    except KeyboardInterrupt:
        at = ", ".join(path.stem for path in processes.in_flight) or "the start"
        said = f"Interrupted at {at}. No kernel is left; what ran is in {folder}"
        console.print(Text(said), soft_wrap=True)
        raise typer.Exit(130)
    finally:
        processes.close()


def _tell(console: Console, ran: LessonRun) -> None:
    """Print a lesson's result, failure and warnings; the table has the rest."""
    cells = f"{ran.passed} of {ran.total}"
    if not console.is_terminal:
        console.print(f"{ran.name}: {cells} cells, {ran.seconds:.1f} s", markup=False)
    if ran.failure:
        cell = f"in code cell {ran.passed + 1} of {ran.total}"
        where = cell if ran.started else "at the start"
        console.print(Text(f"{ran.name} failed {where}:", "bold red"), soft_wrap=True)
        lines = ran.failure.splitlines()
        if len(lines) > _SHOWN_LINES:
            lines[_SHOWN_LINES:] = ["(the rest is in the executed notebook)"]
        console.print(Text("\n".join(f"    {line}" for line in lines)), soft_wrap=True)
    if ran.noisy:
        where = f"code cell{'s' * (len(ran.noisy) > 1)} {str(ran.noisy)[1:-1]}"
        warning = Text(f"warning: {ran.name} wrote to stderr in {where}: ", "yellow")
        console.print(warning.append(ran.noise, "default"), soft_wrap=True)


def _table(runs):
    table = Table()
    table.add_column("lesson", overflow="fold")
    table.add_column("cells", no_wrap=True)
    table.add_column("seconds", justify="right")
    table.add_column("where", overflow="fold")
    for ran in runs:
        cells = f"{ran.passed} of {ran.total}" + (", failed" if ran.failure else "")
        style = "red" if ran.failure else "green"
        page, here = ran.page, Path.cwd()
        page = page.relative_to(here) if page.is_relative_to(here) else page
        table.add_row(
            Text(ran.name),
            Text(cells, style),
            f"{ran.seconds:.1f}",
            Text(str(page)),
        )
    return table
