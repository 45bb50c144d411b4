"""Live coding: the first step of an exercise, as a program with its check.

    live_coding("10_ring_all_reduce").code

The code has the goal and the contract as comments, what the stub and the check need of
the exercise's cells, the stub, and the check: a cell whose value is the points. As a
program it ends with status 0 only if these are all points.
"""

import ast
import json
import re
import textwrap
from functools import cache

from distlab.errors import InvalidArgument
from distlab.files import course_files
from distlab.learner.interview.questions import Question
from distlab.learner.quiz.card import Card

__all__ = ["EXERCISES", "live_coding", "program"]

# Those whose first step takes a quarter of an hour, and little of the exercise's cells.
EXERCISES = (
    "01_why_distribute",
    "04_replication_and_quorums",
    "06_mapreduce",
    "07_rdds_and_spark",
    "09_collectives",
    "10_ring_all_reduce",
    "14_pipelines",
    "16_gradient_compression",
)
_MINUTES = 15
_ITEM = re.compile(r"^\d+\. (.+)$", re.MULTILINE)


@cache
def live_coding(stem: str) -> Question:
    """Return the question that asks for the first step of an exercise.

    Raises: InvalidArgument if the exercise is not one of EXERCISES, or is not there.
    """
    path = course_files().get(f"exercises/{stem}/{stem}.ipynb")
    if stem not in EXERCISES or path is None:
        raise InvalidArgument(f"there is no live-coding question {stem!r}")
    cells = [
        cell | {"source": "".join(cell["source"])}
        for cell in json.loads(path.read_text("utf-8"))["cells"]
    ]
    graded = next(at for at, cell in enumerate(cells) if _marks(cell).get("grade"))
    needed = _needed(cells[:graded], cells[graded]["source"])
    written = [cell for cell in needed if _marks(cell).get("solution")]
    names = ", ".join(name for cell in written for name in _made(cell["source"]))
    failures = _ITEM.findall(
        next(c["source"] for c in cells if "go wrong?" in c["source"])
    )
    card = Card(
        id=f"live-coding-{stem}",
        level="senior",
        topic="live coding",
        question=f"Write {names}, the first step of exercise {stem[:2]}. Before you "
        "begin, say what could go wrong.",
        key_points=(
            "The check gave all points.",
            "You named a case that fails before you wrote the first line.",
            *(f"You had an answer to this: {each}" for each in failures[:2]),
        ),
        cell="next",
        lesson=stem,
        answer="The check decides. The exercise goes on: robust, then efficient.",
    )
    comments = _comments(cells[:graded], written[0])
    parts = [comments, *(cell["source"] for cell in needed), cells[graded]["source"]]
    return Question(card, _MINUTES, code="\n\n".join(parts) + "\n")


def program(code: str) -> str:
    """Return the code of a cell as a program, whose status says if the check passed."""
    last = ast.parse(code).body[-1]
    head, tail = (
        code.splitlines()[part]
        for part in (slice(last.lineno - 1), slice(last.lineno - 1, None))
    )
    points = ast.unparse(last.value.args[0])
    return "\n".join(
        [
            *head,
            f"earned = {tail[0]}",
            *tail[1:],
            f"raise SystemExit(earned < {points})",
            "",
        ]
    )


def _marks(cell):
    return cell["metadata"].get("nbgrader", {})


def _made(source):
    """Return the names that a cell defines at its top level, in order."""
    made = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            made.append(node.name)
        elif isinstance(node, ast.Assign):
            made += [
                n.id for t in node.targets for n in ast.walk(t) if hasattr(n, "id")
            ]
    return made


def _needed(cells, check):
    """Return the code cells that the check, and they themselves, use names of.

    Functions that are given to the learner, in cells of their own, are among them.
    """
    used, needed = _used(check), []
    for cell in reversed([cell for cell in cells if cell["cell_type"] == "code"]):
        body = ast.parse(cell["source"]).body
        given = all(isinstance(node, ast.FunctionDef | ast.ClassDef) for node in body)
        if cell["id"] == "imports" or given or used & {*_made(cell["source"])}:
            used |= _used(cell["source"])
            needed.insert(0, cell)
    return needed


def _used(source):
    return {
        node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)
    }


def _comments(cells, stub):
    """Return the exercise's goal and the step's contract, as comments."""
    texts = [
        c["source"] for c in cells[: cells.index(stub)] if c["cell_type"] != "code"
    ]
    goal = next(text for text in texts if text.startswith("## The goal"))
    step = [text for text in texts if text.startswith("## Step 1")] + texts[-1:]
    lines = "\n\n".join(dict.fromkeys([goal, *step])).splitlines()
    wrapped = (textwrap.wrap(line, 60) or [""] for line in lines)
    return "\n".join(f"# {line}".rstrip() for part in wrapped for line in part)
