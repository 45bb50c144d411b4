"""Proof of an exercise's checks: the grades of answers with known points and hints.

    solutions/STEM/variants/*.py ──▶ read_variants ──┐
    solutions/STEM/STEM.ipynb, and its stubs ────────┴─▶ graded ──▶ Rows ──▶ Proof

Everything runs in this process: the cells that an answer needs, and the grade cells
with their hidden cases. The sandbox and nbgrader, through which submissions go, are
tested once for all exercises.
"""

import ast
import re
import time
import traceback
from collections.abc import Callable, Set
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from rich.table import Table
from rich.text import Text

from distlab.cell_sources import learn
from distlab.checks.kit.answer_variants import concerned, read_variants
from distlab.checks.kit.contracts import (
    contract_of,
    published_cells,
    right_under,
    with_contract,
)
from distlab.checks.kit.grading import Verdict, VerdictDisplay, showing_on
from distlab.errors import DistlabError

__all__ = [
    "AnswerRow",
    "Proof",
    "faults",
    "grade_notebook",
    "notebook_parts",
    "prove",
    "prove_variant",
]

_RIGHT, _WRONG = 2, 5  # the fewest variants that prove anything
_SOLUTION = re.compile(r"^( *)### BEGIN SOLUTION\n.*?^ *### END SOLUTION$", re.M | re.S)
_STUB = r'\1raise NotImplementedError("write this step")'
_HIDDEN = re.compile(r"^### BEGIN HIDDEN TESTS\n.*?^### END HIDDEN TESTS$", re.M | re.S)


class _Kept(VerdictDisplay):
    """A collector of the verdicts that do not pass."""

    def __init__(self, verdicts: list[Verdict]):
        self.verdicts = verdicts

    def show(self, verdict, hidden):
        if verdict.outcome != "pass":
            self.verdicts.append(verdict)

    def total(self, earned, line):
        return earned


@dataclass
class AnswerRow:
    """One answer: its expected points and hint, and its actual ones.

    hint: words that a hint of its verdicts must have, "" if it gets none.
    broken: the cell of it that could not be run, with the reason, or "".
    open_points: points of the steps not graded, since it got its hint before.
    fewer: True if it only has to get fewer points than `expected`.
    """

    name: str
    expected: float
    hint: str
    points: float = 0.0
    verdicts: list[Verdict] = field(default_factory=list)
    seconds: float = 0.0
    broken: str = ""
    open_points: float = 0.0
    fewer: bool = False

    @property
    def met(self) -> str:
        """The hint that it got: the expected one if it did, else the first; or ""."""
        met = [" ".join(v.hints[0].split()) for v in self.verdicts if v.hints]
        fitting = [words for words in met if self.hint and self.hint in words]
        return (fitting or met or [""])[0]

    @property
    def wanted(self) -> str:
        """The expected points in words."""
        return f"{'< ' * self.fewer}{self.expected:g}"

    @property
    def fault(self) -> str:
        """The difference from the expected points and hint, "" if there is none."""
        if self.broken:
            return self.broken
        unclear = [v.found for v in self.verdicts if v.outcome == "inconclusive"]
        if unclear:
            return f"inconclusive: {unclear[0]}"
        if self.fewer:
            expected = self.points < self.expected
        else:
            expected = self.points <= self.expected <= self.points + self.open_points
        if not expected:
            found = self.verdicts[0] if self.verdicts else ""
            return f"got {self.points:g} points, not {self.wanted}\n{found}"
        if self.hint and self.hint not in self.met:
            found = self.verdicts[0] if self.verdicts else ""
            return f'met "{self.met}", not "{self.hint}"\n{found}'
        return ""


@dataclass
class Proof:
    """The results about the checks of one exercise; proven if there is no fault."""

    stem: str
    rows: list[AnswerRow] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    unmet: list[str] = field(default_factory=list)  # hints that no answer here gets

    def table(self) -> Table:
        """Return the rows as a table."""
        table = Table(title=self.stem, title_justify="left", expand=True)
        table.add_column("answer", overflow="fold", ratio=4)
        table.add_column("expected", justify="right", no_wrap=True)
        table.add_column("got", justify="right", no_wrap=True)
        table.add_column("the hint that it met", no_wrap=True, ratio=6)
        table.add_column("s", justify="right", no_wrap=True)
        table.add_column("", no_wrap=True)
        for row in self.rows:
            sign = Text("✗", "bold red") if row.fault else Text("✓", "green")
            described = row.wanted, f"{row.points:g}", Text(row.met)
            name = Text(row.name.replace("_", " "))
            table.add_row(name, *described, f"{row.seconds:.1f}", sign)
        return table


def prove(
    solution: Path,
    show: Callable[[int, int, str], None] = lambda *_: None,
    *,
    every_step: bool = True,
):
    """Grade the solution in a folder, its stubs and every variant; return a `Proof`.

    show: called with the number of answers graded, of all, and the next one's name. The
    stubs are graded as they are released, without the hidden cases.
    every_step: True if every variant is graded on all steps. Else only the first right
        one is, and of the wrong ones that change the same cells the first with each
        hint: on the steps that use what they change, and no further than its hint.

    Raises: DistlabError if the notebook or a variant cannot be read.
    """
    cells = published_cells(solution)
    answers, public, sources, points = notebook_parts(cells)
    variants = read_variants(solution / "variants", answers)
    most = sum(points.values())
    stubs = {name: _SOLUTION.sub(_STUB, source) for name, source in answers.items()}
    stubs |= public
    rows = [(AnswerRow("solution", most, ""), answers, None)]
    rows += [(AnswerRow("stubs", 0.0, ""), stubs, None)]
    seen = set()
    for v in variants:
        kind = v.right or (v.hint, v.changed)
        if kind in seen and not every_step:
            continue
        seen.add(kind)
        steps = None if every_step else concerned(sources | v.cells, v.changed)
        rows.append((AnswerRow(v.name, v.points, v.hint), v.cells, steps))
    proof = Proof(solution.name, faults=_contradictions(variants, most))
    hints = _grade_rows(proof, cells, rows, show)
    met = {v.hints[0] for row in proof.rows for v in row.verdicts if v.hints}
    proof.unmet = [first for first in hints if first not in met]
    return proof


def prove_variant(
    solution: Path, seed: str, show: Callable[[int, int, str], None] = lambda *_: None
) -> Proof:
    """Grade answers by the contract of a seed; return a `Proof`.

    The seed's own solution gets all points. None gets them that is right by another
    contract, and its hint says so, or is wrong by each; of these the ones that replace
    what the seed's solution has not are left out.

    Raises: DistlabError if the exercise has no variants, or a rule does not fit.
    """
    published = published_cells(solution)
    choices = contract_of(published)
    if choices is None:
        raise DistlabError(
            f"{solution.name} has no variants: its check has no CONTRACT."
        )
    contract = choices.of_seed(solution.name, seed)
    cells = with_contract(solution, published, contract)
    answers, public, _, points = notebook_parts(cells)
    stubs = {name: _SOLUTION.sub(_STUB, source) for name, source in answers.items()}
    most, other = sum(points.values()), "contract than this course's"
    right = {*right_under(solution, contract)}
    rows = [(AnswerRow("solution of this seed", most, ""), answers, None)]
    rows += [(AnswerRow("stubs", 0.0, ""), stubs | public, None)]
    for each in choices.others(contract):
        name = f"solution, {', '.join(each.values())}"
        filled = notebook_parts(with_contract(solution, published, each))[0]
        rows.append((AnswerRow(name, most, other, fewer=True), filled, None))
    plain = read_variants(solution / "variants", notebook_parts(published)[0])
    rows += [
        (AnswerRow(v.name, most, "", fewer=True), v.cells, None)
        for v in plain
        if v.right and v.name not in right
    ]
    wrong = read_variants(solution / "variants", answers, those_that_fit=True)
    rows += [
        (AnswerRow(v.name, most, "", fewer=True), v.cells, None)
        for v in wrong
        if not v.right and v.name not in right
    ]
    proof = Proof(f"{solution.name}: {', '.join(contract.values())}")
    _grade_rows(proof, cells, rows, show)
    return proof


def _grade_rows(proof, cells, rows, show):
    """Grade answers, put them into the proof; return the hints of the checks."""
    hints = {}
    for row, filled, steps in rows:
        show(len(proof.rows), len(rows), row.name)
        began = time.monotonic()
        try:
            hints |= _hints_of(grade_notebook(cells, filled, row, steps))
        except _Broken as broken:
            row.broken = str(broken)
        row.seconds = time.monotonic() - began
        proof.rows.append(row)
    proof.faults += [f"{row.name}: {row.fault}" for row in proof.rows if row.fault]
    return hints


def notebook_parts(cells: list[dict]) -> tuple[dict, dict, dict, dict]:
    """Return four dicts by `grade_id`, of the cells of a solution's notebook.

    These are: the solution cells' sources, the grade cells' sources without their
    hidden cases, the sources of all that run, and the points of the grade cells.
    """
    grades = [cell for cell in cells if _is(cell, "grade")]
    return (
        {_name(cell): _source(cell) for cell in cells if _is(cell, "solution")},
        {_name(cell): _HIDDEN.sub("", _source(cell)) for cell in grades},
        {_name(cell): _source(cell) for cell in cells if _is_run(cell)},
        {_name(cell): cell["metadata"]["nbgrader"]["points"] for cell in grades},
    )


def _hints_of(space):
    """Return the first levels of the hints of the checks that a notebook imports."""
    modules = [each for each in space.values() if isinstance(each, ModuleType)]
    checks = [each for each in modules if each.__name__.startswith("distlab.checks.")]
    return dict.fromkeys(hint.levels[0] for each in checks for hint in each.HINTS)


def faults(solution: Path, *, every_step: bool = True) -> list[str]:
    """Return the faults of an exercise's checks, as sentences."""
    return prove(solution, every_step=every_step).faults


def grade_notebook(
    cells: list[dict],
    filled: dict[str, str],
    row: AnswerRow,
    steps: Set[str] | None = None,
) -> dict:
    """Run a notebook's locked cells and its solution and grade cells, some as `filled`.

    row: gets the points, and the verdicts that do not pass.
    steps: the grade cells to run, until one shows the row's hint. None: run them all.

    Returns: the notebook's names.
    """
    space, display = {"__name__": "__main__"}, _Kept(row.verdicts)
    with showing_on(display):
        for cell in filter(_is_run, cells):
            name = _name(cell)
            if _is(cell, "grade") and steps is not None:
                points = cell["metadata"]["nbgrader"]["points"]
                if name not in steps:  # there it does what the solution does
                    row.points += points
                    continue
                if row.hint and row.hint in row.met:
                    row.open_points += points
                    continue
            earned = _value(filled.get(name, _source(cell)), space, name)
            if _is(cell, "grade"):
                if not isinstance(earned, float):
                    raise _Broken(f"cell {name} must end with grade(...).")
                row.points += earned
    return space


class _Broken(DistlabError):
    """A cell that cannot be run, which is a mistake of the exercise's author."""


def _value(source, space, name):
    """Run a cell; return the value of its last line, or None."""
    file = f"<{name}>"
    learn({file: (f"Cell {name}", [f"{line}\n" for line in source.split("\n")])})
    try:
        body = ast.parse(source).body
        last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
        exec(compile(ast.Module(body, []), file, "exec"), space)
        if last:
            return eval(compile(ast.Expression(last.value), file, "eval"), space)
    except NotImplementedError:  # a stub that is no function's body
        return None
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == file]
        line = getattr(error, "lineno", None) or (lines or ["?"])[-1]
        why = f"cell {name}, line {line}: {type(error).__name__}: {error}"
        raise _Broken(why) from error
    return None


def _is(cell, role):
    is_code = cell["cell_type"] == "code"
    return is_code and bool(cell["metadata"].get("nbgrader", {}).get(role))


def _is_run(cell):
    return any(_is(cell, role) for role in ("grade", "solution", "locked"))


def _name(cell):
    return cell["metadata"]["nbgrader"]["grade_id"]


def _source(cell):
    return "".join(cell["source"])


def _contradictions(variants, most):
    """Return the contradictions in the variants' settings, as sentences."""
    right = sum(variant.right for variant in variants)
    found = []
    if right < _RIGHT or len(variants) - right < _WRONG:
        found.append(
            f"{right} right variants and {len(variants) - right} wrong ones; checks "
            f"are proven by at least {_RIGHT} right and {_WRONG} wrong ones."
        )
    for each in variants:
        if each.right and (each.points != most or each.hint):
            found.append(f"{each.name}: a right answer gets {most:g} points, no hint.")
        if not each.right and (each.points == most or not each.hint):
            found.append(f"{each.name}: a wrong answer loses points and has a hint.")
    return found
