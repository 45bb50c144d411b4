"""The command line: `distlab lab`, `run`, `doctor`, and the other commands."""

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

from distlab.commands.collect import collect
from distlab.commands.doctor import doctor
from distlab.commands.export import export
from distlab.commands.film import film
from distlab.commands.grade import grade
from distlab.commands.lab import lab
from distlab.commands.launch import launch
from distlab.commands.lessons import UnknownLesson
from distlab.commands.progress import progress
from distlab.commands.prove import prove
from distlab.commands.run import run
from distlab.errors import CourseUnusable, DistlabError

__all__ = ["app", "main"]


class _Commands(TyperGroup):
    """The subcommands; an error that distlab raises on purpose becomes its message."""

    def invoke(self, ctx):
        try:
            return super().invoke(ctx)
        except DistlabError as error:
            Console(stderr=True).print(Text(str(error), "red"), soft_wrap=True)
            bad_usage = isinstance(error, UnknownLesson | CourseUnusable)
            raise typer.Exit(2 if bad_usage else 1)


app = typer.Typer(
    cls=_Commands,
    help="Learn distributed systems and distributed training by running them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
)
app.command("lab")(lab)
app.command("run")(run)
app.command("doctor")(doctor)
app.command("launch")(launch)
app.command("film")(film)
app.command("export")(export)
app.command("collect")(collect)
app.command("grade")(grade)
app.command("progress")(progress)
app.command("prove")(prove)


def main() -> None:
    """Run the command that the command line names, and exit with its status."""
    app()


if __name__ == "__main__":
    main()
