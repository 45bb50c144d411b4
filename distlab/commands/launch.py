"""`distlab launch`: a torch.distributed script of your own, monitored as it runs."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from distlab.errors import InvalidArgument
from distlab.faults import Hang, Kill, Slow
from distlab.launch.script import Script, ScriptRun, launch_script

__all__ = ["launch"]


def launch(
    script: Annotated[str, typer.Argument(help="A Python file; with -m, a module.")],
    args: Annotated[
        list[str] | None, typer.Argument(help="What the script is given, after --.")
    ] = None,
    ranks: Annotated[int, typer.Option("-n", "--ranks", help="How many.")] = 2,
    module: Annotated[bool, typer.Option("-m", help="Run a module.")] = False,
    kill: Annotated[
        list[str] | None,
        typer.Option(help="Such as 2@100: rank 2 dies at its 100th collective."),
    ] = None,
    hang: Annotated[
        list[str] | None, typer.Option(help="Such as 2@100: it hangs there.")
    ] = None,
    slow: Annotated[
        list[str] | None,
        typer.Option(help="Such as 1x4: rank 1 takes four times as long."),
    ] = None,
    trace: Annotated[
        Path | None, typer.Option(help="File for the trace, for ui.perfetto.dev.")
    ] = None,
    page: Annotated[
        Path | None, typer.Option(help="File for a web page that plays the run.")
    ] = None,
) -> None:
    """Run a torch.distributed script as torchrun does; report why it hangs or fails.

    Each line comes with its rank. A rank that skipped a collective, called another one
    or waits for ever is named as soon as all wait. The status is 1 if a rank failed.
    """
    faults = [
        *_planned(kill, "@", Kill, int),
        *_planned(hang, "@", Hang, int),
        *_planned(slow, "x", Slow, float),
    ]
    for path in filter(None, (trace, page)):
        if not path.parent.is_dir():
            raise InvalidArgument(f"there is no folder {path.parent} for {path.name}.")
    asked = Script(script, args or [], module)
    run = launch_script(asked, ranks, faults=faults, whole_trace=bool(trace or page))
    console = Console(stderr=True, highlight=False)
    if run.failure:
        story = Text(f"\n{type(run.failure).__name__}: {run.failure}", "red")
        console.print(story, soft_wrap=True)
    for sentence in run.unmet:
        console.print(sentence, soft_wrap=True)
    _write(run, trace, page, console)
    if run.failure or run.signal:
        raise typer.Exit(1)


def _planned(asked: list[str] | None, between: str, fault: type, number: Callable):
    """Yield the faults of a command-line option, such as "2@100"."""
    for text in asked or []:
        found = re.fullmatch(rf"(\d+){between}(\d+(?:\.\d+)?)", text)
        if not found:
            name = fault.__name__.lower()
            example = "1x4" if between == "x" else "2@100"
            raise InvalidArgument(f"--{name} {text}: write it such as {example}.")
        try:
            yield fault(int(found[1]), number(found[2]))
        except ValueError:
            raise InvalidArgument(f"{text}: {found[2]} is no whole number.") from None


def _write(run: ScriptRun, trace: Path | None, page: Path | None, console: Console):
    if not run.trace.events and (trace or page):
        console.print("No rank used torch.distributed: the trace is empty.")
    if trace:
        run.trace.to_perfetto(trace)
        console.print(f"{trace}: {len(run.trace.events):,} events, for ui.perfetto.dev")
    if page:
        from distlab.show import save

        save(run.trace, page)
        console.print(f"{page}: opens in a browser")
