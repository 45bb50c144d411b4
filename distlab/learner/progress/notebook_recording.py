"""Recording of a notebook while a person works in it; unattended runs are left out.

    IPython, after a cell ──┐                     ┌──▶ thread ──▶ Record
    predictions, on a guess ┴─▶ Watch, a change ──┘   twice a second

The cell waits for none of this: a change is put on a list, and a thread writes it. An
error here must not reach the learner, so it is dropped.
"""

import ast
import atexit
import os
import sys
import threading
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from distlab.learner.predictions.answer_storage import listeners
from distlab.learner.progress.record import Record, record_path

__all__ = ["NotebookWatch", "begin", "notebook_path"]

_PAUSE_S = 0.5
_GRADES = ("grade", "grade_each")


def begin() -> None:
    """Record the cells run in this process from now on, if it is a person's notebook.

    Called by: `import distlab`, under IPython.
    """
    shell = sys.modules["IPython"].get_ipython()
    path = notebook_path(shell)
    if path is None or hasattr(shell, "_distlab_watch"):
        return
    shell._distlab_watch = watch = NotebookWatch(shell, path, Record(record_path()))
    shell.events.register("post_run_cell", watch.after_cell)
    listeners.append(watch.after_guess)


def notebook_path(shell) -> Path | None:
    """Return the path of the notebook open in this kernel, None if it is unattended.

    Jupyter's server gives its kernels the notebook's name, as VS Code does. A program
    that runs a notebook without a reader (nbgrader, nbclient, papermill) may inherit
    the name, and is recognized because it does not allow input.
    """
    kernel = getattr(shell, "kernel", None)
    if kernel is None or not getattr(kernel, "_allow_stdin", False):
        return None
    off = os.environ.get("DISTLAB_PROGRESS", "").lower() in ("off", "0", "no", "false")
    if off or "NBGRADER_EXECUTION" in os.environ:
        return None
    named = os.environ.get("JPY_SESSION_NAME") or shell.user_ns.get(
        "__vsc_ipynb_file__"
    )
    return Path(named) if named and str(named).endswith(".ipynb") else None


def _kind(path):
    """Return "exercises" or "lessons", the kind of a notebook in any folder."""
    try:
        is_exercise = '"nbgrader": {' in path.read_text("utf-8")
    except (OSError, ValueError):  # the kernel runs elsewhere
        is_exercise = path.parent.name == path.stem
    return "exercises" if is_exercise else "lessons"


class NotebookWatch:
    """A listener that turns the events of one notebook into changes to the record."""

    def __init__(self, shell, path: Path, record: Record):
        self._path, self._record = path, record
        self._shell, self._step = shell, None
        self._kind = _kind(path)
        self._changes, self._woken, self._over = [], threading.Event(), False
        self._paused, self._process = threading.Event(), os.getpid()
        self._thread = threading.Thread(
            target=self._write_on, name="distlab progress", daemon=True
        )
        self._thread.start()
        atexit.register(self.flush)

    def after_cell(self, result) -> None:
        """Record that a cell has run, its grade, and a hint."""
        with suppress(Exception):  # a cell must not fail because of its recording
            info = result.info
            if info.cell_id and result.success:
                self._add(_ran, info.cell_id)
            points = _points(info.raw_cell) if "grade" in info.raw_cell else None
            if points is not None and info.cell_id:
                self._step = info.cell_id
                earned = result.result if isinstance(result.result, float) else 0.0
                self._add(_attempted, info.cell_id, earned, points)
            if self._step and "hint()" in info.raw_cell:
                self._add(_hinted, self._step)

    def after_guess(self, guess, measured) -> None:
        """Record a question, the guess, and its outcome."""
        with suppress(Exception):
            value, answer = guess.value, guess.answer
            if value is not None:
                outcome = "" if measured is None else answer.outcome(value, measured)
                self._add(_guessed, guess.question, answer.said(value), outcome)

    def _add(self, change, *arguments):
        self._changes.append((change, arguments))
        self._woken.set()

    def _write_on(self):
        while self._woken.wait() and not self._over:
            self._woken.clear()
            self._paused.wait(_PAUSE_S)
            self.flush()

    def close(self) -> None:
        """Write the pending changes, and end the thread."""
        self._over = True
        self._woken.set()
        self._paused.set()
        self._thread.join()
        self.flush()

    def flush(self) -> None:
        """Write the pending changes; a forked child has nothing to write."""
        changes, self._changes = self._changes, []
        if not changes or os.getpid() != self._process:
            return

        def apply(held):
            entry = held[self._kind].setdefault(self._path.stem, {})
            entry["path"] = str(self._path)
            entry["last"] = datetime.now().isoformat(timespec="seconds")
            for change, arguments in changes:
                change(entry, *arguments)

        with suppress(Exception):  # a full disk is not worth a word in a lesson
            self._record.update(apply)


def _points(source):
    """Return the points that a cell's last line can earn, None if it grades nothing."""
    try:
        last = ast.parse(source).body[-1].value
    except (SyntaxError, IndexError, AttributeError):
        return None
    if not isinstance(last, ast.Call) or getattr(last.func, "id", "") not in _GRADES:
        return None
    points = getattr(last.args[0], "value", None) if last.args else None
    return points if isinstance(points, int | float) else None


def _ran(entry, cell):
    cells = entry.setdefault("cells", [])
    if cell not in cells:
        cells.append(cell)


def _guessed(entry, question, said, outcome):
    kept = entry.setdefault("predictions", {}).setdefault(question, {})
    changed = kept.get("said") != said
    kept["said"] = said
    kept["outcome"] = outcome or ("" if changed else kept.get("outcome", ""))


def _attempted(entry, step, earned, points):
    kept = entry.setdefault("steps", {}).setdefault(step, {})
    kept["of"], kept["last"] = points, earned
    kept["best"] = max(earned, kept.get("best", 0.0))
    kept["attempts"] = kept.get("attempts", 0) + 1


def _hinted(entry, step):
    kept = entry.setdefault("steps", {}).setdefault(step, {})
    kept["hints"] = kept.get("hints", 0) + 1
