"""`distlab prove`: exercises' checks, tested by right, wrong and mutated answers."""

from itertools import product
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
    mutants: Annotated[
        bool,
        typer.Option(
            "--mutants",
            help="Instead, change each line of the solution in small ways, and list "
            "the changes that still get all points by public cases.",
        ),
    ] = False,
    variant: Annotated[
        list[str] | None,
        typer.Option(
            help="Instead, prove the variant of this seed; may be given more than once."
        ),
    ] = None,
) -> None:
    """Grade the solution, its stubs and the variants in this process; show a table.

    The status is 1 if an answer does not get its points and its hint, or if a mutant
    survives that is not listed in variants/equivalent_mutants.toml.
    """
    solutions = find_exercises(exercise or [])
    console = Console(highlight=False)
    if mutants:
        return _list_survivors(console, solutions)
    with Progress("loading the checks"):
        from distlab.checks.kit.check_proof import prove as prove_exercise
        from distlab.checks.kit.check_proof import prove_variant
    faults = 0
    for solution, seed in product(solutions, variant or [""]):
        with Progress() as progress:

            def show(done, of, name, progress=progress):
                progress.count(done, of, "answers", [name])

            if seed:
                proof = prove_variant(solution, seed, show)
            else:
                proof = prove_exercise(solution, show)
        _tell(console, proof)
        faults += len(proof.faults)
    if faults:
        raise typer.Exit(1)


def _tell(console, proof):
    """Print the table of a proof, the hints that no answer met, and its faults."""
    console.print(proof.table())
    for words in proof.unmet:
        console.print(Text(f"  No answer meets the hint {words[:60]!r}.", "dim"))
    if not proof.faults:
        console.print(f"✓ {proof.stem} is proven by {len(proof.rows)} answers.")
    for fault in proof.faults:
        console.print(Text(f"✗ {proof.stem}: {fault}", "red"), soft_wrap=True)


def _list_survivors(console, solutions):
    with Progress("loading the checks"):
        from distlab.checks.kit.mutants import survivors
    count = 0
    for solution in solutions:
        with Progress() as progress:
            found = list(
                survivors(
                    solution,
                    lambda done, of, cell: progress.count(done, of, "mutants", [cell]),
                )
            )
        sign = "✗" if found else "✓"
        console.print(f"{sign} {solution.name}: {len(found)} mutants survive")
        for mutant in found:
            console.print(Text(f"  {mutant}"), soft_wrap=True)
        count += len(found)
    if count:
        raise typer.Exit(1)
