"""`distlab doctor`: this machine's equipment, and remedies for missing parts."""

import os
import platform
import sys
import time
from collections.abc import Iterator
from importlib import import_module, metadata
from itertools import chain, starmap
from typing import NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

import distlab
from distlab.calls.notebook_frontend import cell_number, show
from distlab.calls.progress import Progress
from distlab.errors import DistlabError, InvalidArgument
from distlab.optional_imports import extra_of
from distlab.show.table import html_report
from distlab.units import GB, readable_bytes, readable_seconds

__all__ = ["Finding", "doctor", "findings"]

GOOD, WARNING, FAILED = "✓", "note", "failed"
OPTIONAL = "optional"  # and not installed
_STYLES = {GOOD: "green", WARNING: "yellow", OPTIONAL: "dim", FAILED: "bold red"}
_COLORS = {GOOD: "var(--right)", OPTIONAL: "var(--muted)"}

# What `distlab lab` and `run` need, and the real systems beside which lessons run ours.
_JUPYTER = ("jupyterlab", "papermill")
# Their lessons, the extra that brings them, and each engine with its name; Flink has
# an environment of its own.
_SYSTEMS = (
    (
        "lessons 02, 03",
        "systems",
        {"etcd": "etcd", "redis": "Redis", "postgres": "PostgreSQL"},
    ),
    ("lessons 07, 08", "spark", {"spark": "Spark"}),
    ("lesson 08", None, {"flink": "Flink"}),
    ("lesson 09", "mpi", {"mpi": "Open MPI"}),
    ("lesson 12", "deepspeed", {"deepspeed": "DeepSpeed"}),
    ("lesson 17", "torchft", {"torchft": "torchft"}),
)


class Finding(NamedTuple):
    """One finding: its state (such as GOOD or OPTIONAL), subject and result."""

    state: str
    what: str
    found: str


def doctor() -> None:
    """Show this machine's equipment, and remedies for missing parts.

    The status is 1 if no world of ranks can run here.
    """
    sections = []
    try:
        with Progress("looking what is here, and starting two ranks"):
            sections.extend(findings())
    finally:
        _show(sections)
    print("A world of ranks runs here; what is optional can wait.")


def _show(sections):
    """Display the table in a notebook, print it elsewhere."""
    # A kernel asks for colours, which its text would then have.
    plain = None if sys.stdout.isatty() else False
    console = Console(highlight=False, force_jupyter=False, force_terminal=plain)
    table = Table(show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for rows in sections:
        for state, what, found in rows:
            word = "ok" if state == GOOD and console.options.ascii_only else state
            table.add_row(Text(word, _STYLES[state]), what, Text(found))
        table.add_section()
    if cell_number() is None:
        console.print(table)
        return
    with console.capture() as text:
        console.print(table)
    found = list(chain(*sections))
    signs = [(row.state, _COLORS.get(row.state, "var(--warn)")) for row in found]
    html = html_report("", [("", ""), *(row[1:] for row in found)], "<<", signs=signs)
    show({"text/plain": text.get(), "text/html": html})


def findings() -> Iterator[list[Finding]]:
    """Yield the findings about this machine, in sections.

    Raises: DistlabError, at the end, if no world of ranks can run here.
    """
    failure = None
    for look in (_service, _machine, _worlds):
        rows = []
        try:
            rows.extend(look())
        except (DistlabError, OSError) as error:
            failure = error
            sorry = "none can run here; see below the table"
            rows.append(Finding(FAILED, "a world", sorry))
        yield rows
    optional = [*_packages(_JUPYTER), *starmap(_systems, _SYSTEMS), _grading()]
    yield sorted(optional, key=lambda row: row.state != GOOD)
    if failure is not None:
        raise DistlabError(f"No world can run here: {failure}")


def _service() -> Iterator[Finding]:
    """Yield the notebook service, the best choices there, and the record's folder."""
    from distlab.commands.running.hosted_notebooks import here
    from distlab.launch.machine import count_gpus

    service, gpus = here(), count_gpus()
    yield Finding(GOOD, "service", service.name if service else "none; a plain machine")
    shared = "two ranks on NCCL that share the GPU"
    two = ["two ranks on gloo", shared, f"{gpus} ranks on NCCL"][min(gpus, 2)]
    best = f'4 ranks on gloo, on CPUs; "With two GPUs" in lessons 10 to 17: {two}'
    yield Finding(GOOD, "best here", best)
    home = os.environ.get("DISTLAB_HOME")
    if service:
        if gpus < 2:
            yield Finding(GOOD, "more GPUs", service.accelerator)
        where = f"in {home}. " if home else ""
        yield Finding(WARNING, "your progress", where + service.keep)
    elif home:
        yield Finding(GOOD, "your progress", f"in {home} (DISTLAB_HOME)")


def _machine() -> Iterator[Finding]:
    """Yield the findings on Python, the system, cores, memory and torch."""
    from distlab.launch.machine import available_bytes, usable_cores

    yield Finding(GOOD, "Python", f"{platform.python_version()}, {sys.executable}")
    system = f"{platform.system()} {platform.release()}, {platform.machine()}"
    yield Finding(GOOD, "system", system)
    cores = usable_cores()
    yield Finding(GOOD, "cores", f"{cores} that this process may use")
    if cores == 1:
        means = "The lessons run, more slowly: ranks take turns, so nothing speeds up."
        yield Finding(WARNING, "", means)
    free = available_bytes()
    yield Finding(GOOD, "free memory", readable_bytes(free))
    if free < GB:
        means = "Under 1 GB. The lessons run, more slowly; if a rank is killed, take "
        means += "fewer ranks, or close what else is running."
        yield Finding(WARNING, "", means)
    yield (torch := next(_packages(["torch"])))
    if torch.found.startswith(("2.6", "2.7")):
        means = "FSDP2 on CPUs needs torch 2.8; lesson 12 compares with it."
        yield Finding(WARNING, "", means)


def _worlds() -> Iterator[Finding]:
    """Yield the findings on GPUs, backends and the start of a world of ranks.

    Raises: DistlabError or OSError if none can run.
    """
    from distlab.launch.machine import count_gpus, start_method

    gpus = count_gpus()
    yield Finding(GOOD, "GPUs", f"{gpus}" if gpus else "none; the lessons run without")
    on_gpus = f'; NCCL for up to {gpus} ranks: backend="nccl"' if gpus else ""
    on_gpus += ", and for more with share_gpu=True" if gpus else ""
    yield Finding(GOOD, "backend", f"gloo, on CPUs{on_gpus}")
    yield Finding(GOOD, "start", "{}: {}".format(*start_method()))
    yield Finding(GOOD, "largest world", f"{_largest_world()} idle ranks fit")
    first_s, again_s = _time_world(), _time_world()
    took = f"{readable_seconds(first_s)} from start to end, "
    took += f"{readable_seconds(again_s)} the second time, when torch is loaded"
    yield Finding(GOOD, "a world of 2", f"works; {took}")


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
    for name in packages:
        try:
            yield Finding(GOOD, name, metadata.version(name))
        except metadata.PackageNotFoundError:
            extra = extra_of(name)
            package = f'"distlab[{extra}]"' if extra else name
            yield Finding(OPTIONAL, name, f"pip install {package}")


def _systems(lessons, extra, names):
    """Return the finding on the real systems that a lesson uses where they are."""
    engines = {key: import_module(f"distlab.engines.{key}") for key in names}
    missing = [names[key] for key in names if not engines[key].is_installed()]
    if missing:
        how = f'pip install "distlab[{extra}]"' if extra else "distlab install flink"
        how = f"{', '.join(missing)}: {how}"
        return Finding(OPTIONAL, lessons, how)
    return Finding(GOOD, lessons, ", ".join(names.values()))


def _grading():
    """Return the finding on nbgrader, and on the sandbox in which it grades."""
    from distlab.sandbox import why_no_sandbox

    [nbgrader] = _packages(["nbgrader"])
    if nbgrader.state == OPTIONAL:
        return Finding(OPTIONAL, "grading", f"for instructors: {nbgrader.found}")
    if why := why_no_sandbox():
        return Finding(OPTIONAL, "grading", f"for instructors; no sandbox: {why}")
    return Finding(GOOD, "grading", f"nbgrader {nbgrader.found}, with a sandbox")
