"""The command line: `distlab lab`, `run`, `doctor`, `film` and `export`."""

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

from distlab.commands.doctor import doctor
from distlab.commands.export import export
from distlab.commands.film import film
from distlab.commands.lab import lab
from distlab.commands.lessons import UnknownLesson
from distlab.commands.run import run
from distlab.errors import DistlabError

__all__ = ["app", "main"]


class _Commands(TyperGroup):
    """The subcommands; an error that distlab raises on purpose becomes its message."""

    def invoke(self, ctx):
        try:
            return super().invoke(ctx)
        except DistlabError as error:
            Console(stderr=True).print(Text(str(error), "red"), soft_wrap=True)
            raise typer.Exit(2 if isinstance(error, UnknownLesson) else 1)


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
app.command("film")(film)
app.command("export")(export)


def main() -> None:
    """Run the command that the command line names, and exit with its status."""
    app()


if __name__ == "__main__":
    main()
