"""The command line: `distlab lab`, `run`, `doctor`, and the other commands."""

import sys
from importlib import import_module

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

from distlab.errors import CourseUnusable, DistlabError, UnknownLesson

__all__ = ["app", "main"]

# Each is a function of a module of its own name in distlab.commands.
_COMMANDS = ("lab", "run", "doctor", "launch", "explain", "film", "export")
_COMMANDS += ("collect", "grade", "progress", "review", "prove", "glossary")


class _Commands(TyperGroup):
    """The subcommands; an error that distlab raises on purpose becomes its message."""

    def invoke(self, ctx):
        try:
            return super().invoke(ctx)
        except DistlabError as error:
            Console(stderr=True).print(Text(str(error), "red"), soft_wrap=True)
            bad_usage = isinstance(error, UnknownLesson | CourseUnusable)
            raise typer.Exit(2 if bad_usage else 1)


def app(*asked: str) -> typer.Typer:
    """Return the application with the commands asked for, and all of them for none."""
    made = typer.Typer(
        cls=_Commands,
        help="Learn distributed systems and distributed training by running them.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_show_locals=False,
    )
    made.callback()(lambda: None)  # one command alone is a subcommand still
    for name in asked or _COMMANDS:
        module = import_module(f"distlab.commands.{name}")
        made.command(name)(getattr(module, name))
    return made


def main() -> None:
    """Run the command that the command line names, and exit with its status."""
    app(*(set(sys.argv[1:2]) & set(_COMMANDS)))()


if __name__ == "__main__":
    main()
