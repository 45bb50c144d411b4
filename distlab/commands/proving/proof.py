"""The proof of one exercise's checks: a row for each answer, expected beside got."""

import copy
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from rich.table import Table
from rich.text import Text

from distlab.commands.proving.course import Graded, graded
from distlab.commands.proving.variants import read_variants

__all__ = ["Proof", "Row", "prove_exercise"]

_RIGHT, _WRONG = 2, 5  # the fewest variants that prove anything


@dataclass(frozen=True)
class Row:
    """One answer: what it should get, and what became of it.

    hint: words that the hint must have, "" where no hint may be met.
    """

    name: str
    points: float
    hint: str
    graded: Graded

    @property
    def met(self) -> str:
        """The hint that it met: the expected one if it did, else the first; or ""."""
        told = re.findall(
            r"^ *Hint: (.*(?:\n {8}\S.*)*)", self.graded.said, re.MULTILINE
        )
        hints = list(map(_folded, told))
        fitting = [line for line in hints if self.hint and self.hint in line]
        return (fitting or hints or [""])[0]

    @property
    def fault(self) -> str:
        """What is not as it should be, "" if nothing."""
        if self.graded.trouble:
            return f"could not be graded: {self.graded.trouble}"
        if self.graded.points != self.points:
            got = f"got {self.graded.points:g} points instead of {self.points:g}"
            return ", ".join([got, *self.graded.notes])
        if self.hint and self.hint not in _folded(self.graded.said):
            met = f'"{self.met}"' if self.met else "no hint"
            return f'met {met} instead of "{self.hint}"'
        if not self.hint and self.points and self.met:
            return f'met the hint "{self.met}" with full points'
        return ""


@dataclass
class Proof:
    """What was found about the checks of one exercise.

    faults: sentences on what is wrong; without any the checks are proven.
    """

    stem: str
    rows: list[Row] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    @property
    def slowest(self) -> tuple[float, str, str]:
        """The step whose checks took the most processor time: seconds, row, step."""
        steps = [
            (seconds, row.name, step)
            for row in self.rows
            for step, seconds in row.graded.busy_s.items()
        ]
        return max(steps, default=(0.0, "", ""))

    def table(self) -> Table:
        """Return the rows as a table."""
        seconds, name, step = self.slowest
        caption = f"slowest checks: {step} of {name}, {seconds:.1f} s of processor time"
        table = Table(title=self.stem, title_justify="left", expand=True)
        table.caption, table.caption_justify = caption, "left"
        table.add_column("answer", overflow="fold", ratio=4)
        table.add_column("expected", justify="right", no_wrap=True)
        table.add_column("got", justify="right", no_wrap=True)
        table.add_column("the hint that it met", no_wrap=True, ratio=6)
        table.add_column("s", justify="right", no_wrap=True)
        table.add_column("", no_wrap=True)
        for row in self.rows:
            sign = Text("✗", "bold red") if row.fault else Text("✓", "green")
            table.add_row(
                Text(row.name),
                f"{row.points:g}",
                f"{row.graded.points:g}",
                Text(row.met),
                f"{row.graded.seconds:.0f}",
                sign,
            )
        return table


def prove_exercise(
    solution: Path,
    jobs: int = 1,
    show: Callable[[int, int, list[str]], None] = lambda *_: None,
) -> Proof:
    """Grade the solution in a folder, the untouched exercise and every variant.

    show: told how many answers are graded, of how many, and whose turn it is.

    Raises: DistlabError if the variants cannot be read or nothing can be graded.
    """
    answers = json.loads((solution / f"{solution.name}.ipynb").read_text("utf-8"))
    variants = read_variants(solution / "variants", _solution_cells(answers))
    proof = Proof(solution.name, faults=_too_few(solution, variants))
    if proof.faults:
        return proof

    def submissions(released):
        return {"solution": answers, "untouched": released} | {
            variant.name: _answered(released, variant.cells) for variant in variants
        }

    most, found = graded(solution, submissions, jobs, show)
    proof.rows += [Row("solution", most, "", found["solution"])]
    proof.rows += [Row("untouched", 0.0, "", found["untouched"])]
    for variant in variants:
        row = Row(variant.name, variant.points, variant.hint, found[variant.name])
        proof.rows.append(row)
        proof.faults += _contradictions(variant, most)
    proof.faults += [f"{row.name}: {row.fault}." for row in proof.rows if row.fault]
    return proof


def _solution_cells(notebook):
    """Return `grade_id` -> source of the cells that a learner fills in."""
    return {
        cell["metadata"]["nbgrader"]["grade_id"]: "".join(cell["source"])
        for cell in notebook["cells"]
        if cell["metadata"].get("nbgrader", {}).get("solution")
    }


def _answered(released, cells):
    notebook = copy.deepcopy(released)
    for cell in notebook["cells"]:
        name = cell["metadata"].get("nbgrader", {}).get("grade_id")
        cell["source"] = cells.get(name, cell["source"])
    return notebook


def _too_few(solution, variants):
    right = sum(variant.right for variant in variants)
    wrong = len(variants) - right
    if right >= _RIGHT and wrong >= _WRONG:
        return []
    return [
        f"{solution / 'variants'} has {right} right variants and {wrong} wrong ones; "
        f"checks are proven by at least {_RIGHT} right and {_WRONG} wrong ones."
    ]


def _contradictions(variant, most):
    """Return what a variant says of itself that cannot be, as sentences."""
    if variant.right and (variant.points != most or variant.hint):
        return [f"{variant.name}: a right answer gets all {most:g} points and no hint."]
    if not variant.right and (variant.points == most or not variant.hint):
        return [f"{variant.name}: a wrong answer loses points and has a hint."]
    return []


def _folded(text):
    return " ".join(text.split())
