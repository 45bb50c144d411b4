"""One lesson, executed by papermill in a fresh kernel, as a notebook and a page.

lesson.ipynb ─▶ papermill ─▶ kernel, one code cell after the other
                    └─▶ folder/lesson.ipynb ─▶ nbconvert ─▶ folder/lesson.html
"""

import asyncio
import logging
import os
import signal
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import nbformat
import papermill
from jupyter_client import AsyncKernelManager
from jupyter_core.utils import run_sync
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbconvert import HTMLExporter
from nbconvert.filters import strip_ansi
from papermill.exceptions import PapermillExecutionError

from distlab.errors import DistlabError
from distlab.processes import Interrupts

__all__ = ["LessonRun", "count_cells", "execute", "hushed"]


@dataclass
class LessonRun:
    """What became of one lesson.

    total, passed: its code cells, and how many of them ended well, counted from the top.
    failure: what stopped it, "" if nothing did; it happened in code cell `passed + 1`, or
    before the first one if not `started`.
    noise: the first line it wrote to stderr, "" if none. noisy: the code cells that did.
    """

    name: str
    total: int
    passed: int
    started: bool
    seconds: float
    page: Path
    failure: str
    noise: str
    noisy: list[int]


def count_cells(lesson: Path) -> int:
    """Return how many code cells a run of `lesson` executes.

    Raises: DistlabError if the file is not a notebook.
    """
    try:
        with hushed():
            return len(_code_cells(nbformat.read(lesson, as_version=4)))
    except (OSError, ValueError, nbformat.ValidationError) as error:
        raise DistlabError(
            f"{lesson} is not a notebook that can be read: {error}"[:500]
        )


def execute(
    lesson: Path, folder: Path, cell_timeout_s: int, on_cell: Callable[[], None]
) -> LessonRun:
    """Execute `lesson` in its own folder; write the notebook and its page into `folder`.

    A cell that fails ends the lesson; one tagged `raises-exception` is meant to. `on_cell`
    is called after every code cell. No kernel is left behind, after Ctrl-C neither.

    Called by: `distlab run`, within `hushed`.

    Raises: KeyboardInterrupt; the notebook up to there is written.
    """
    begun = []
    stopped = ""
    executed = folder / lesson.name
    executed.with_suffix(".html").unlink(missing_ok=True)  # of an earlier run
    nbformat.write(nbformat.read(lesson, as_version=4), executed)
    start_time = time.monotonic()
    with _Kernel(lesson.parent) as kernel:
        try:
            kernel.start()
            papermill.execute_notebook(
                lesson,
                executed,
                km=kernel.manager,
                kernel_name="python3",
                execution_timeout=cell_timeout_s,  # without it papermill waits forever
                progress_bar=False,
                on_cell_execute=lambda cell, cell_index: begun.append(cell_index),
                on_cell_executed=lambda **_: on_cell(),
            )
        except PapermillExecutionError:
            pass  # the executed notebook says which cell, and whether it was meant to
        except CellTimeoutError:
            stopped = (
                f"not done after {cell_timeout_s} s; --cell-timeout gives it longer"
            )
        except DeadKernelError:
            stopped = kernel.obituary("died")
        except RuntimeError:
            stopped = kernel.obituary("did not start")
    seconds = time.monotonic() - start_time
    notebook = nbformat.read(executed, as_version=4)
    failure = _raised(notebook) or stopped
    _mark(notebook, failure, begun[-1] if stopped and begun else None)
    nbformat.write(notebook, executed)
    noise = _stderr(notebook)
    return LessonRun(
        name=lesson.stem,
        total=len(_code_cells(notebook)),
        passed=len(begun) - bool(failure and begun),
        started=bool(begun),
        seconds=seconds,
        page=_write_page(notebook, executed),
        failure=failure,
        noise=next(iter(noise.values()), ""),
        noisy=list(noise),
    )


@contextmanager
def hushed() -> Iterator[None]:
    """Keep the log lines and warnings of papermill and its kin off the terminal."""
    drop = logging.NullHandler()  # with no handler at all, logging writes to stderr
    logging.getLogger().addHandler(drop)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.getLogger().removeHandler(drop)


class _Kernel:
    """A kernel of this interpreter, in `folder`, from its start to its certain end.

    papermill would lose a kernel that is interrupted while it starts, and let it write on
    the terminal. The two talk through sockets in a private folder, not through ports.

    manager: what papermill takes.
    """

    def __init__(self, folder):
        # A python3 kernel in the user's home must not win over the one of this environment.
        os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"
        self._folder = folder
        self._private = tempfile.TemporaryDirectory(prefix="distlab-")
        self._log = Path(self._private.name) / "stderr"
        meeting = str(Path(self._private.name) / "kernel.json")
        self.manager = _Manager(
            kernel_name="python3", transport="ipc", connection_file=meeting
        )
        self.manager.clients = []

    def __enter__(self):
        return self

    def start(self):
        no_history = "--HistoryManager.hist_file=:memory:"
        with self._log.open("wb") as log:
            run_sync(self.manager.start_kernel)(
                cwd=str(self._folder),
                stdout=log,
                stderr=log,
                extra_arguments=[no_history],
            )

    def obituary(self, what):
        """Return in a sentence how the kernel ended, then the last lines it wrote."""
        status = (
            run_sync(self.manager.provisioner.poll)()
            if self.manager.has_kernel
            else None
        )
        how = "" if status is None else f": exit status {status}"
        if status is not None and status < 0:
            how = f": ended by {signal.Signals(-status).name}"
            if -status == signal.SIGKILL:
                how += "; the system does that when memory runs out"
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return "\n".join([f"the kernel {what}{how}", *lines[-5:]])

    def __exit__(self, *_):
        with Interrupts():  # a second Ctrl-C waits until the kernel is gone
            run_sync(self._end)()
            self._private.cleanup()

    async def _end(self):
        # An interrupted cell is still being waited for, and would report its end too late.
        waiting = asyncio.all_tasks() - {asyncio.current_task()}
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        for client in self.manager.clients:
            client.stop_channels()
        if await self.manager.is_alive():
            await self.manager.shutdown_kernel()
        else:
            await self.manager.cleanup_resources()


class _Manager(AsyncKernelManager):
    """Remembers the clients it makes: papermill stops only those of its own managers."""

    def client(self, **settings):
        self.clients.append(super().client(**settings))
        return self.clients[-1]


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
    """Return what the failed cell raised, or "" if none failed but those meant to."""
    for cell in _code_cells(notebook):
        if cell.metadata.get("papermill", {}).get("exception"):
            errors = [
                output for output in cell.outputs if output.output_type == "error"
            ]
            if not errors:
                return "an error that left no text"
            said = f"{errors[-1].ename}: {errors[-1].evalue}"
            return strip_ansi(said if errors[-1].evalue else errors[-1].ename)
    return ""


def _mark(notebook, failure, index):
    """Make the notebook itself say what happened to it.

    papermill takes a cell that is meant to raise for a failure and says so at the top of
    the notebook; and it says nothing of a cell that was stopped.
    """
    if not failure:
        papermill.execute.remove_error_markers(notebook)
    if index is not None:
        output = nbformat.v4.new_output("error", ename="Stopped", evalue=failure)
        output.traceback = [f"Stopped: {failure}"]
        notebook.cells[index].outputs.append(output)


def _stderr(notebook):
    """Return the first line of what each code cell, by its number, wrote to stderr."""
    written = {}
    for number, cell in enumerate(_code_cells(notebook), 1):
        text = "".join(
            output.text
            for output in cell.outputs
            if output.output_type == "stream" and output.name == "stderr"
        )
        if text:
            written[number] = next(
                iter(strip_ansi(text).strip().splitlines()), "(blank)"
            )
    return written


def _write_page(notebook, executed):
    page = executed.with_suffix(".html")
    exporter = HTMLExporter(log=logging.getLogger("nbconvert"))
    name = {"metadata": {"name": executed.stem}}
    body, _ = exporter.from_notebook_node(notebook, resources=name)
    page.write_text(body, encoding="utf-8")
    return page
