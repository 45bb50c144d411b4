"""Rubrics of exercises, and notes for assistants: the mistakes that are known.

Both are read from what grades: the steps of the solution's notebook, the wrong answers
in its folder `variants`, and the hints of its check.
"""

import json
import re
from importlib import import_module
from itertools import groupby
from pathlib import Path

from distlab.checks.kit.answer_variants import Variant, read_variants
from distlab.checks.kit.check_proof import notebook_parts
from distlab.checks.kit.contracts import (
    contract_in,
    contract_of,
    published_cells,
    right_under,
)
from distlab.checks.kit.hints import COMMON, Hint

__all__ = ["page", "rubric_of"]

_HEAD = """# Rubrics, and notes for assistants

Made by `distlab rubric` from the solutions, the known wrong answers and the checks'
hints. A step's points are given when all its cases pass, the hidden ones too, and not
in part (except step 3 of exercise 03). Points that you change by hand are kept.
Once a course has released a variant, `distlab rubric 10` prints the steps of that one
with its contract; a page made before has those of the published exercise.

The second table of an exercise lists mistakes that its check knows: the points that an
answer with this mistake alone still gets, the hint that stands with its verdict, and
what `hint()` says next, a question to ask before you explain.
"""
_RELEASED = """> **The variant that is released.** {sentences}
> Steps are the variant's. Mistakes are in the published contract's words; those that
> are right in the variant are left out, and points may differ:
> `distlab prove --variant` shows them.

"""
_STEP = re.compile(r"^## (Step .+?) \((\d+) points?\)\s*$", re.M)
_BULLET = re.compile(r"^- \*\*(.+?):?\*\*:? *(.+)$", re.M)
_WANTED = ("output", "result", "returns", "what must hold", "cost target")


def page(solutions: list[Path]) -> str:
    """Return the rubrics of some exercises, as Markdown."""
    return _HEAD + "".join(map(rubric_of, solutions))


def rubric_of(solution: Path) -> str:
    """Return an exercise's steps with their points, and its known mistakes.

    solution: its folder. Raises: DistlabError if it cannot be read.
    """
    notebook = json.loads((solution / f"{solution.name}.ipynb").read_text("utf-8"))
    texts = ["".join(cell["source"]) for cell in notebook["cells"]]
    title, about = re.split(r"\n\s*\n", texts[0].strip(), maxsplit=1)
    answers, *_ = notebook_parts(published_cells(solution))
    contract = contract_in(notebook["cells"])
    right = right_under(solution, contract) if contract else []
    variants = read_variants(solution / "variants", answers)
    wrong = [v for v in variants if not v.right and v.name not in right]
    return (
        f"\n## {title.removeprefix('# Exercise ')}\n\n{_plain_links(about)}\n\n"
        f"{_released(notebook['cells'], contract)}"
        f"step | points | full points when\n---|---|---\n{_steps(texts)}\n"
        "mistake | points left | the learner sees | ask next\n---|---|---|---\n"
        f"{_mistakes(wrong, _hints(texts))}"
    )


def _released(cells, contract):
    """Return a note on a released variant; "" for the published exercise."""
    said = " ".join(contract_of(cells).sentences(contract)) if contract else ""
    return _RELEASED.format(sentences=said) if said else ""


def _steps(texts):
    """Return the rows of the steps, and what each says of its result."""
    rows, steps = [], _STEP.split("\n\n".join(texts[1:]))[1:]
    for name, points, text in zip(*[iter(steps)] * 3, strict=True):
        wanted = [
            f"{label}: {_row(said)}"
            for label, said in _BULLET.findall(text)
            if label.lower() in _WANTED
        ]
        paragraphs = [each for each in text.split("\n\n") if len(each.split()) > 5]
        rows.append(f"{name} | {points} | {' '.join(wanted) or _row(paragraphs[0])}\n")
    return "".join(rows)


def _mistakes(wrong, hints):
    """Return the rows of wrong answers, those with the same hint in one."""
    met = [(-v.points, _levels(v, hints), v.about.split("\n\n")[0]) for v in wrong]
    rows = []
    for (points, levels), same in groupby(sorted(met), lambda each: each[:2]):
        what = " / ".join(_row(about) for *_, about in same)
        seen, following = _row(levels[0]), _row("".join(levels[1:2])) or "-"
        rows.append(f"{what} | {-points:g} | {seen} | {following}\n")
    return "".join(rows)


def _hints(texts):
    """Return the hints of the check that the notebook imports, then the common ones."""
    imported = "\n".join(texts)
    name = re.search(r"from distlab\.checks import (\w+) as checks", imported)[1]
    return [*import_module(f"distlab.checks.{name}").HINTS, *COMMON]


def _levels(variant: Variant, hints: list[Hint]) -> list[str]:
    """Return the levels of the hint that a wrong answer meets."""
    levels = [[" ".join(level.split()) for level in hint.levels] for hint in hints]
    fitting = [each for each in levels if variant.hint in each[0]]
    if fitting:
        return min(fitting, key=lambda each: each[0].index(variant.hint))
    return [f"… {variant.hint} …"]  # words that the check puts together from the facts


def _row(text):
    return " ".join(text.split()).replace("|", "\\|")


def _plain_links(text):
    return text.replace("](../../", "](../")
