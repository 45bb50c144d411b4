"""`distlab lab`: JupyterLab, with a lesson open."""

import os
import sys
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer
from rich.console import Console

from distlab.commands.lessons import find_lessons

__all__ = ["lab", "lab_command"]

_KERNELS = "distlab.commands.lab_kernels"


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
) -> None:
    """Open JupyterLab on the lessons. Ctrl-C ends it."""
    notebook = find_lessons([lesson] if lesson else [])[0]
    console = Console(highlight=False)
    console.print(f"JupyterLab opens {notebook.name}. Ctrl-C ends it.", soft_wrap=True)
    sys.stdout.flush()
    # A python3 kernel in the user's home must not win over this environment's.
    os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"
    os.environ["JUPYTER_CONFIG_PATH"] = _with_own_settings()
    # This process becomes the server: nothing stands between it and Ctrl-C.
    os.execv(sys.executable, lab_command(notebook, port=port, browser=browser))


def _with_own_settings():
    """Return the path of settings, ours first: no question whether to fetch news."""
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
