"""One lesson, executed by papermill in a fresh kernel, as a notebook and a page.

lesson.ipynb ─▶ papermill ─▶ kernel, one code cell after the other
                    └─▶ folder/lesson.ipynb ─▶ nbconvert ─▶ folder/lesson.html
"""

import json
import logging
import math
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import nbformat
import papermill
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbconvert import HTMLExporter
from nbconvert.filters import strip_ansi
from papermill.exceptions import PapermillExecutionError

from distlab.commands.running.kernel import Kernel
from distlab.commands.running.lesson_process import LessonRun, Settings
from distlab.errors import DistlabError
from distlab.patience import limit_in_words, patience
from distlab.processes import Child
from distlab.show.assets import once

__all__ = ["count_cells", "execute", "hushed", "main"]

_STARTS_S = 60  # a kernel


def count_cells(lesson: Path) -> int:
    """Return the number of code cells that a run of `lesson` executes.

    Raises: DistlabError if the file is not a notebook.
    """
    try:
        with hushed():
            return len(_code_cells(nbformat.read(lesson, as_version=4)))
    except (OSError, ValueError, nbformat.ValidationError) as error:
        said = str(error)[:400]
        raise DistlabError(f"{lesson} is not a notebook that can be read: {said}")


def execute(
    lesson: Path, folder: Path, settings: Settings, on_cell: Callable[[], None]
) -> LessonRun:
    """Execute `lesson` in its own folder; write notebook and page into `folder`.

    A cell that fails ends the lesson, unless it has the tag `raises-exception`.
    `on_cell` is called after every code cell. No kernel is left behind, not even after
    Ctrl-C.

    Called by: `distlab run`, within `hushed`.

    Raises: KeyboardInterrupt; the notebook up to there is written.
    """
    executed = folder / lesson.name
    executed.with_suffix(".html").unlink(missing_ok=True)  # of an earlier run
    nbformat.write(nbformat.read(lesson, as_version=4), executed)
    start_time = time.monotonic()
    begun, stopped = _run_cells(lesson, executed, settings, on_cell)
    seconds = time.monotonic() - start_time
    notebook = nbformat.read(executed, as_version=4)
    failure = stopped or _raised(notebook)
    _mark(notebook, failure, begun[-1] if stopped and begun else None)
    nbformat.write(notebook, executed)
    noise = _stderr(notebook)
    return LessonRun(
        name=lesson.stem,
        total=len(_code_cells(notebook)),
        passed=len(begun) - bool(failure and begun),
        started=bool(begun),
        seconds=seconds,
        page=_write_page(notebook, executed) if settings.pages else executed,
        failure=failure,
        noise=next(iter(noise.values()), ""),
        noisy=list(noise),
    )


def _run_cells(lesson, executed, settings, on_cell):
    """Run the cells by papermill, which writes `executed` at their end.

    Returns (positions of the cells that began, the reason or ""): the reason why the
    last of them was stopped, or none could begin.
    """
    begun, cell_timeout_s = [], settings.cell_timeout_s
    with Kernel(lesson.parent, forked=settings.forked) as kernel:
        try:
            kernel.start()
            papermill.execute_notebook(
                lesson,
                executed,
                parameters=settings.parameters.get(lesson.stem),
                km=kernel.manager,
                kernel_name="python3",
                start_timeout=_whole_seconds(_STARTS_S),
                # without one papermill waits for ever
                execution_timeout=_whole_seconds(cell_timeout_s),
                progress_bar=False,
                engine_name="saved at the end",
                store_widget_state=False,  # a page without a kernel shows the words
                on_cell_execute=lambda cell, cell_index: begun.append(cell_index),
                on_cell_executed=lambda **_: on_cell(),
            )
        except PapermillExecutionError:
            pass  # the notebook marks the cell that raised, and expected failures
        except CellTimeoutError:
            limit = limit_in_words(cell_timeout_s, "--cell-timeout")
            return begun, f"not done after {limit}; --cell-timeout gives it longer"
        except DeadKernelError:
            return begun, kernel.obituary("died")
        except RuntimeError:
            if begun:
                raise
            return begun, kernel.obituary("did not start")
    return begun, ""


def _whole_seconds(seconds):
    return math.ceil(patience(seconds))


class _SavedAtTheEnd(papermill.engines.NBClientEngine):
    """An engine that writes the notebook once at its end, not twice for each cell.

    A lesson has many pictures: to write them took a sixth of its time.
    """

    @classmethod
    def execute_managed_notebook(cls, nb_man, *args, **kwargs):
        """Execute the cells."""
        path, nb_man.output_path = nb_man.output_path, None
        try:
            return super().execute_managed_notebook(nb_man, *args, **kwargs)
        finally:
            nb_man.output_path = path


papermill.engines.papermill_engines.register("saved at the end", _SavedAtTheEnd)


@contextmanager
def hushed() -> Iterator[None]:
    """Suppress the log lines and warnings of papermill and its dependencies."""
    drop = logging.NullHandler()  # with no handler at all, logging writes to stderr
    logging.getLogger().addHandler(drop)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.getLogger().removeHandler(drop)


def _code_cells(notebook):
    """Return the cells that are executed, in order: papermill skips the others."""
    return [
        cell
        for cell in notebook.cells
        if cell.cell_type == "code"
        and cell.source.strip()
        and "skip-execution" not in cell.metadata.get("tags", [])
    ]


def _raised(notebook):
    """Return the error of the failed cell, or "" if no cell failed unexpectedly."""
    for cell in _code_cells(notebook):
        if cell.metadata.get("papermill", {}).get("exception"):
            errors = [out for out in cell.outputs if out.output_type == "error"]
            if not errors:
                return "an error that left no text"
            name, said = errors[-1].ename, errors[-1].evalue
            return strip_ansi(f"{name}: {said}" if said else name)
    return ""


def _mark(notebook, failure, index):
    """Write the failure into the notebook, and remove false ones.

    papermill marks a cell that is meant to raise as a failure at the top; a cell that
    was stopped it does not mark.
    """
    if not failure:
        papermill.execute.remove_error_markers(notebook)
    if index is not None:
        output = nbformat.v4.new_output("error", ename="Stopped", evalue=failure)
        output.traceback = [f"Stopped: {failure}"]
        notebook.cells[index].outputs.append(output)


def _stderr(notebook):
    """Return number of a code cell -> the first line that it wrote to stderr."""
    written = {}
    for number, cell in enumerate(_code_cells(notebook), 1):
        text = "".join(
            output.text
            for output in cell.outputs
            if output.output_type == "stream" and output.name == "stderr"
        )
        if text:
            lines = strip_ansi(text).strip().splitlines()
            written[number] = lines[0] if lines else "a blank line"
    return written


def _write_page(notebook, executed):
    page = executed.with_suffix(".html")
    exporter = HTMLExporter(log=logging.getLogger("nbconvert"))
    name = {"metadata": {"name": executed.stem}}
    body, _ = exporter.from_notebook_node(notebook, resources=name)
    page.write_text(once(body), encoding="utf-8")
    return page


def main(child: Child) -> None:
    """Run the lessons that the owner requests, until it ends or interrupts this."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with hushed():
            while True:
                order = json.loads(child.receive())
                places = Path(order["lesson"]), Path(order["folder"])
                settings = Settings(**order["settings"])
                ran = execute(*places, settings, lambda: child.send(b"null"))
                described = asdict(ran) | {"page": str(ran.page)}
                child.send(json.dumps(described).encode())
    except KeyboardInterrupt:
        pass  # its kernel is gone
