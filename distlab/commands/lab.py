"""`distlab lab`: JupyterLab, with a lesson open."""

import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer
from rich.console import Console

from distlab.commands.copy import update
from distlab.commands.lessons import find_lessons
from distlab.errors import ExtraMissing
from distlab.files import course_files

__all__ = ["lab", "lab_command"]

_KERNELS = "distlab.commands.running.lab_kernels"


def lab(
    lesson: Annotated[
        str | None,
        typer.Argument(
            help="Number, stem or path of a lesson; the first one if left out."
        ),
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="Port on this machine; a free one if left out.")
    ] = None,
    browser: Annotated[bool, typer.Option(help="Open the browser.")] = True,
    folder: Annotated[
        Path, typer.Option(help="Your copy of the course; made if it is not there.")
    ] = Path("~/distlab-course"),
) -> None:
    """Open JupyterLab on your own copy of the lessons. Ctrl-C ends it.

    A newer version of the course is copied there, too, and what you edited stays.
    """
    if not find_spec("jupyterlab"):
        raise ExtraMissing.of("distlab lab", ["JupyterLab"], "lab")
    notebook = find_lessons([lesson] if lesson else [])[0]
    console = Console(highlight=False)
    place = f"lessons/{notebook.name}"
    course = course_files()
    if course.get(place, notebook).samefile(notebook) and place in course:
        folder = folder.expanduser().absolute()
        _tell(console, folder, course, done := update(folder, course))
        _trust(folder / place for place in [*done.copied, *done.updated])
        notebook = folder / place
    console.print(f"JupyterLab opens {notebook.name}. Ctrl-C ends it.", soft_wrap=True)
    sys.stdout.flush()
    # A python3 kernel in the user's home must not win over this environment's.
    os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"
    os.environ["JUPYTER_CONFIG_PATH"] = _with_own_settings()
    # An older ipykernel warns at each start that debuggers miss Python's own modules.
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    # This process becomes the server: nothing stands between it and Ctrl-C.
    os.execv(sys.executable, lab_command(notebook, port=port, browser=browser))


def _tell(console, folder, course, done):
    """Print the copy's folder, the new files, and the new versions of edited ones."""
    console.print(f"Your copy of the course is in {folder}.", soft_wrap=True)
    described = {"Updated, as you had not edited them": done.updated}
    if len(done.copied) < len(course):
        described["New"] = done.copied
    described["No longer part of the course, and left as they are"] = done.left
    for what, places in described.items():
        if places:
            console.print(f"{what}: {', '.join(places)}.", soft_wrap=True)
    for place, beside in done.kept.items():
        said = f"You edited {place}, so it stays; the new version is {beside}."
        console.print(said, soft_wrap=True)


def _trust(copies):
    """Sign the copied notebooks, or Jupyter distrusts them and warns at each start."""
    from nbformat import from_dict
    from nbformat.sign import NotebookNotary

    notary = NotebookNotary()
    for path in copies:
        if path.suffix == ".ipynb":
            notary.sign(from_dict(json.loads(path.read_text(encoding="utf-8"))))
    notary.store.close()


def _with_own_settings():
    """Return the path of settings, ours first.

    They turn off the question about news, nbgrader, which is for instructors, and pings
    over websockets: Jupyter passes milliseconds to tornado, which expects seconds.
    """
    own = Path(__file__).parent / "jupyter"
    others = os.environ.get("JUPYTER_CONFIG_PATH")
    return os.pathsep.join([str(own), *([others] if others else [])])


def lab_command(notebook: Path, *, port: int | None, browser: bool) -> list[str]:
    """Return the command that serves the project with `notebook` open.

    A notebook in a folder named lessons is served from the folder above that one, so
    that the exercises are in reach; any other from its own folder.
    """
    folder = notebook.parent
    root = folder.parent if folder.name == "lessons" else folder
    where = quote(notebook.relative_to(root).as_posix())
    options = {
        "ServerApp.root_dir": root,
        "LabApp.default_url": f"/lab/tree/{where}",
        "ServerApp.answer_yes": True,  # else the first Ctrl-C only asks a question
        "LabApp.log_level": "WARN",  # keeps the address, not the rest
        "MappingKernelManager.kernel_manager_class": f"{_KERNELS}.LabKernel",
    }
    if port is not None:
        options["ServerApp.port"] = port
    command = [sys.executable, "-m", "jupyterlab", "--log-level=WARN"]
    command += [f"--{name}={value}" for name, value in options.items()]
    if not browser:
        command.append("--no-browser")
    if os.geteuid() == 0:  # usual in a container, where Jupyter refuses to start
        command.append("--allow-root")
    return command
