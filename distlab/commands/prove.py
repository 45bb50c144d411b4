"""`distlab prove`: right answers get full marks, wrong ones lose them for a reason."""

from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from distlab.commands.bar import GradingBar
from distlab.commands.grade import prepare_workers
from distlab.commands.lessons import find_exercises

__all__ = ["prove"]


def prove(
    exercise: Annotated[
        list[str] | None,
        typer.Argument(help="Numbers or stems of exercises; all of them if left out."),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="How many answers to grade at once."),
    ] = None,
) -> None:
    """Grade the solution, the untouched exercise and the variants; show a table.

    The status is 1 if an answer does not get its points and its hint.
    """
    solutions = find_exercises(exercise or [])
    console = Console(highlight=False)
    prepare_workers()
    with console.status("Loading"):
        from distlab.commands.proving import prove_exercise
        from distlab.launch.machine import usable_cores
    faults = 0
    for solution in solutions:
        doing = f"making {solution.name}"
        with GradingBar(console, doing, stays=False) as bar:
            proof = prove_exercise(solution, jobs or usable_cores(), bar.show)
        if proof.rows:
            console.print(proof.table())
        for fault in proof.faults:
            console.print(Text(f"✗ {proof.stem}: {fault}", "red"), soft_wrap=True)
        faults += len(proof.faults)
    if faults:
        raise typer.Exit(1)
