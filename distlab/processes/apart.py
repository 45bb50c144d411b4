"""Ask a Python of its own: a task goes there in a file, a JSON answer comes back.

ask(module, task) ──▶ folder/task ──▶ main(folder) of the module
                  ◀── folder/answer ◀── answer(folder, said)
"""

import json
import linecache
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from distlab.processes.server_handle import trusted_path

__all__ = ["TrialTimeout", "answer", "ask", "in_cells", "task_in"]

_CODE = (
    "import json, sys; from importlib import import_module; "
    "sys.path[:] = json.loads(sys.argv[1]); "
    "import_module(sys.argv[2]).main(sys.argv[3])"
)
_END_S = 3.0


class TrialTimeout(Exception):
    """A trial's time was over before its jobs had ended."""


def ask(module: str, task: dict, *, timeout_s: float, seed: int = 1) -> dict:
    """Have `main(folder)` of a module answer a task; its folder is gone afterwards.

    seed: of the hashes of strings in that Python.

    Raises: TrialTimeout; RuntimeError if the Python itself fails.
    """
    with tempfile.TemporaryDirectory(prefix="distlab-") as folder:
        cells = {name: linecache.getlines(name) for name in _cells()}
        here = {"cells": cells, "path": sys.path}
        Path(folder, "task").write_bytes(pickle.dumps(task | here))
        said = _wait(module, folder, timeout_s, seed)
        path = Path(folder, "answer")
        if not path.exists():
            raise RuntimeError(f"the Python that owns the jobs said: {said}")
        return json.loads(path.read_text())


def task_in(folder: str) -> dict:
    """Return the task, in the Python that has been asked."""
    task = pickle.loads(Path(folder, "task").read_bytes())
    sys.path[:] = task["path"]  # for what workers import; ours is imported by now
    for name, lines in task["cells"].items():
        linecache.cache[name] = sum(map(len, lines)), None, lines, name
    return task


def answer(folder: str, said: dict) -> None:
    """Answer, in the Python that has been asked."""
    Path(folder, "answer").write_text(json.dumps(said))


def _wait(module, folder, timeout_s, seed):
    """Wait until that Python has ended; return the last that it wrote as an error."""
    path = json.dumps(trusted_path())
    owner = subprocess.Popen(
        [sys.executable, "-P", "-c", _CODE, path, module, folder],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONHASHSEED": str(seed), "TMPDIR": folder},
    )
    try:
        _, said = owner.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        raise TrialTimeout from None
    finally:
        _end(owner)
    return said.decode(errors="replace").strip()[-500:]


def _end(owner):
    """End the owner, which ends its workers; kill it if it does not."""
    for number in (signal.SIGINT, signal.SIGKILL):
        if owner.poll() is None:
            owner.send_signal(number)
            try:
                owner.communicate(timeout=_END_S)
            except subprocess.TimeoutExpired:
                continue


def _cells():
    """Return file name -> what a notebook calls it, of each cell that was run."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is None:
        return {}
    named = {name: shell.compile.format_code_name(name) for name in linecache.cache}
    return {name: " ".join(words) for name, words in named.items() if words}


def in_cells(story: str) -> str:
    """Return a failure's story with cells called what the notebook calls them."""
    for name, cell in _cells().items():
        story = story.replace(f"{os.path.basename(name)}, line", f"{cell}, line")
    return story
