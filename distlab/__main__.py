"""The command line: `distlab lab`, `run`, `doctor`, and the other commands."""

import errno
import sys
from importlib import import_module
from pathlib import Path

if sys.argv[1:2] == ["launch"]:  # torch takes longest: it loads beside all the rest
    from distlab.launch.machine import PRELOAD, start_method
    from distlab.processes import warm_up

    warm_up(PRELOAD, start_method()[0])

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

from distlab.errors import CourseUnusable, DistlabError, ExtraMissing, UnknownLesson
from distlab.optional_imports import extra_of

__all__ = ["app", "main"]

# Each is a function of a module of its own name in distlab.commands.
_COMMANDS = {
    "Learners": (
        "lab",
        "run",
        "doctor",
        "install",
        "progress",
        "review",
        "interview",
        "export",
        "film",
    ),
    "Scripts of your own": ("launch", "explain", "check"),
    "Instructors": ("release", "collect", "grade", "marks", "rubric", "slides"),
    "Authors": ("prove", "glossary", "notebooks", "site"),
}
_PANELS = {name: panel for panel, names in _COMMANDS.items() for name in names}


class _Commands(TyperGroup):
    """The subcommands; an error that distlab raises on purpose becomes its message."""

    def invoke(self, ctx):
        try:
            return self._invoke(ctx)
        except DistlabError as error:
            Console(stderr=True).print(Text(str(error), "red"), soft_wrap=True)
            bad_usage = isinstance(error, UnknownLesson | CourseUnusable)
            raise typer.Exit(2 if bad_usage else 1)

    def _invoke(self, ctx):
        try:
            return super().invoke(ctx)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            where = error.filename2 or error.filename or Path.cwd()
            said = f"the disk is full ({where}). Free some space, and do this again."
            raise DistlabError(said)
        except ModuleNotFoundError as error:
            if not (extra := extra_of(error.name or "")):
                raise
            user = f"distlab {ctx.invoked_subcommand}"
            raise ExtraMissing.of(user, [error.name], extra)


def app(*asked: str) -> typer.Typer:
    """Return the application with the named commands, or all commands if none is."""
    made = typer.Typer(
        cls=_Commands,
        help="Learn distributed systems and distributed training by running them.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_show_locals=False,
    )
    made.callback()(lambda: None)  # one command alone is a subcommand still
    for name in asked or _PANELS:
        module = import_module(f"distlab.commands.{name}")
        how = {"cls": getattr(module, "COMMAND", None)}
        how |= {"rich_help_panel": _PANELS[name]}
        made.command(name, **how)(getattr(module, name))
    return made


def main() -> None:
    """Run the command that the command line names, and exit with its status."""
    app(*(set(sys.argv[1:2]) & set(_PANELS)))()


if __name__ == "__main__":
    main()
