"""`distlab prove`: tests of an exercise's checks by right and wrong answers."""

from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from distlab.calls.progress import Progress
from distlab.commands.lessons import find_exercises

__all__ = ["prove"]


def prove(
    exercise: Annotated[
        list[str] | None,
        typer.Argument(help="Numbers or stems of exercises; all of them if left out."),
    ] = None,
) -> None:
    """Grade the solution, its stubs and the variants in this process; show a table.

    The status is 1 if an answer does not get its points and its hint.
    """
    solutions = find_exercises(exercise or [])
    console = Console(highlight=False)
    with Progress("loading the checks"):
        from distlab.checks.kit.check_proof import prove as prove_exercise
    faults = 0
    for solution in solutions:
        with Progress() as progress:
            proof = prove_exercise(
                solution,
                lambda done, of, name: progress.count(done, of, "answers", [name]),
            )
        console.print(proof.table())
        for words in proof.unmet:
            console.print(Text(f"  No answer meets the hint {words[:60]!r}.", "dim"))
        if not proof.faults:
            console.print(f"✓ {proof.stem} is proven by {len(proof.rows)} answers.")
        for fault in proof.faults:
            console.print(Text(f"✗ {proof.stem}: {fault}", "red"), soft_wrap=True)
        faults += len(proof.faults)
    if faults:
        raise typer.Exit(1)
