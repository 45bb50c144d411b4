"""`distlab notebooks`: the course for a notebook service, from the same source.

    lessons/10_ring.ipynb ──▶ colab/lessons/10_ring.ipynb      + a cell that installs
                         └──▶ kaggle/lessons/10_ring.ipynb     + links that work there

The cell installs the wheel that is published with the notebooks. A service keeps its
own torch, Jupyter and NumPy: pip may add packages, and change none.
"""

import json
import posixpath
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

import distlab
from distlab.commands.running.hosted_notebooks import SERVICES, Service, repository
from distlab.errors import InvalidArgument
from distlab.files import course_files

__all__ = ["notebooks"]

_MADE_FOR = ("colab", "kaggle")

_CELL = """\
# Run this cell first. It adds distlab and changes no package that is here.
import importlib.util
import subprocess
import sys
import tempfile


def pip(*arguments):
    command = [sys.executable, "-m", "pip", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


if importlib.util.find_spec("distlab") is None:
    wheel = "{wheel}"
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as here:
        here.write(pip("list", "--format=freeze").stdout)
        here.flush()
        for extras in {extras}:
            wanted = f"distlab[{{extras}}] @ {{wheel}}"
            done = pip("install", "--quiet", "--constraint", here.name, wanted)
            if not done.returncode:
                break
        else:
            raise RuntimeError("{network}pip said: " + done.stderr[-300:])
    importlib.invalidate_caches()

from distlab.commands.running.hosted_notebooks import ready

ready()"""


def notebooks(
    service: Annotated[str, typer.Option("--for", help="colab or kaggle.")],
    to: Annotated[Path, typer.Option(help="Folder for the notebooks.")],
) -> None:
    """Write lessons and exercises with a first cell that installs distlab."""
    if service not in _MADE_FOR:
        raise InvalidArgument(f"--for {service}: choose {' or '.join(_MADE_FOR)}.")
    places = course_files()
    for place, source in places.items():
        if source.suffix == ".ipynb":
            notebook = json.loads(source.read_text(encoding="utf-8"))
            _prepare(notebook, place, service, places)
            target = to / place
            target.parent.mkdir(parents=True, exist_ok=True)
            text = json.dumps(notebook, indent=1, ensure_ascii=False)
            target.write_text(text + "\n", encoding="utf-8")


def _prepare(notebook, place, service, places):
    """Add the cell that installs, and make relative links work on the service."""
    cells = notebook["cells"]
    for cell in cells:
        if cell["cell_type"] == "markdown":
            text = _linked("".join(cell["source"]), place, SERVICES[service], places)
            cell["source"] = text.splitlines(keepends=True)
    code = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    wanted = ",".join(["notebook", *sorted(_extras(code))])
    text = _CELL.format(
        wheel=f"{repository()}/raw/{service}/"
        f"distlab-{distlab.__version__}-py3-none-any.whl",
        extras=tuple(dict.fromkeys([wanted, "notebook"])),
        network="Is Internet on? See Settings. " if service == "kaggle" else "",
    )
    made = {"cell_type": "code", "execution_count": None, "id": "install"}
    made |= {"metadata": {}, "outputs": [], "source": text.splitlines(keepends=True)}
    cells.insert(int(cells[0]["cell_type"] == "markdown"), made)


def _extras(code):
    """Return the extras of the engines that these cells import."""
    extras = set()
    for text in code:
        for module in re.findall(r"from distlab\.engines import (.*)", text):
            for name in module.split(", "):
                engine = Path(find_spec(f"distlab.engines.{name}").origin).read_text()
                extras |= set(re.findall(r'EngineMissing\.of\(.*"(\w+)"\)', engine))
    return extras


def _linked(text, place, service: Service, places):
    """Return Markdown with its relative links replaced by addresses."""

    def absolute(found):
        path, _, part = found[1].partition("#")
        target = posixpath.normpath(posixpath.join(posixpath.dirname(place), path))
        if target in places:
            return f"]({service.address(target)})"
        return f"]({repository()}/blob/HEAD/{target}{'#' * bool(part)}{part})"

    return re.sub(r"\]\((?!https?:|#)([^)\s]+)\)", absolute, text)
