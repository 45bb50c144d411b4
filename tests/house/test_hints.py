"""Every hint of every check has more to it, and none gives the solution away."""

import ast
import json
import re
from itertools import chain
from pathlib import Path

import pytest

from distlab import grading
from distlab.grading.hinting import shelves

ROOT = Path(__file__).parents[2]
FOR_INSTRUCTORS = {"desk", "marking"}  # folders without checks
SOURCES = [
    path
    for path in sorted((ROOT / "distlab" / "grading").rglob("*.py"))
    if path.parent.name not in FOR_INSTRUCTORS
]
STEMS = sorted(path.name for path in (ROOT / "solutions").iterdir() if path.is_dir())
LEVELS = [pair for shelf in shelves() for pair in shelf.levels.items()]
KNOWN = {nudge for nudge, _ in LEVELS}
VERDICTS = {"_fail": 2, "Wrong": 2, "Verdict": 4}  # from so many arguments on, the
# last of them is a nudge
OWN = "hinting.py"  # what `hint` says where it has no hint


def template(node):
    """Return the text that an expression is, with {} for what is filled in; or None."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(template(part) or "{}" for part in node.values)
    return None


def parts(node):
    """Return the expressions that one may be, or holds; of a tuple it is the last."""
    if isinstance(node, ast.IfExp):
        return parts(node.body) + parts(node.orelse)
    if isinstance(node, ast.BoolOp | ast.Dict):
        return list(chain.from_iterable(map(parts, node.values)))
    if isinstance(node, ast.List):
        return list(chain.from_iterable(map(parts, node.elts)))
    if isinstance(node, ast.Tuple) and node.elts:
        return parts(node.elts[-1])
    return [node]


def places_of_nudges(tree):
    """Return the expressions in a module that stand where a nudge stands.

    These are the values of tables, what functions return that say they return a nudge,
    and the last argument of a verdict.
    """
    yield from (node.value for node in tree.body if isinstance(node, ast.Assign))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            said = f"{node.name} {ast.get_docstring(node)}"
            if re.search("hint|nudge|_for_", said):
                returned = [r for r in ast.walk(node) if isinstance(r, ast.Return)]
                yield from (each.value for each in returned if each.value)
        elif isinstance(node, ast.Call) and node.args:
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if len(node.args) >= VERDICTS.get(name, 9):
                yield node.args[-1]
        elif isinstance(node, ast.Assign) and "hint" in ast.unparse(node.targets[0]):
            yield node.value


def nudges_of(source):
    tree = ast.parse(source)
    told = [template(part) for place in places_of_nudges(tree) for part in parts(place)]
    told = [" ".join(text.split()) for text in told if text]
    return {text for text in told if len(text.split()) > 4 and text[-1] in ".?}"}


def test_every_nudge_of_a_check_has_more_and_no_other_text_has():
    sources = [path.read_text() for path in SOURCES if path.name != OWN]
    nudges = set().union(*map(nudges_of, sources))
    assert sorted(nudges - KNOWN) == []
    texts = {
        " ".join(template(node).split())
        for source in sources
        for node in ast.walk(ast.parse(source))
        if template(node)
    }
    assert sorted(KNOWN - texts) == []
    assert len(nudges) > 0.97 * len(KNOWN), "nudges stand where nobody looks"


@pytest.mark.parametrize("source", [
    "HINTS = {'a': 'One two three four five.'}",
    "def hint_for(x):\n    return 'One two three four five.' if x else ''",
    "def _try(self):\n    raise Wrong(a, f'One two {three} four five.')",
    "def _odd(self):\n    '''Return (what, nudge).'''\n    return a, 'One two, 3 4 5?'",
])  # fmt: skip
def test_a_nudge_without_more_would_be_noticed(source):
    assert len(nudges_of(source) - KNOWN) == 1


def test_every_check_has_a_file_of_its_own_exercise():
    named = [name for shelf in shelves() for name in shelf.checks]
    checks = [n for n in grading.__all__ if hasattr(getattr(grading, n), "judge")]
    assert sorted(named) == sorted(checks)
    folder = ROOT / "distlab" / "grading" / "more"
    assert sorted(path.stem for path in folder.iterdir()) == STEMS


def test_each_level_is_some_new_sentences_in_the_voice_of_the_house():
    for nudge, levels in LEVELS:
        assert levels, nudge
        said = [nudge, *levels]
        assert len(set(said)) == len(said), nudge
        for level in levels:
            assert nudge not in level and level[-1] in ".?", level
            assert 1 <= len(re.findall(r"[.?:](?: |$)", level)) <= 6, level
            assert 25 < len(level) < 420, level
            assert not re.search(r"!(?!=)|simply|just do|obvious|—", level), level


def code_of(stem):
    """Return the expressions and statements of a solution, without white space."""
    path = ROOT / "solutions" / stem / f"{stem}.ipynb"
    for cell in json.loads(path.read_text())["cells"]:
        source = "".join(cell["source"])
        if cell["metadata"].get("nbgrader", {}).get("solution"):
            for answer in re.findall("BEGIN SOLUTION(.*?)### END", source, re.DOTALL):
                lines = [line for line in answer.splitlines() if line.strip()]
                deep = min(len(line) - len(line.lstrip()) for line in lines)
                tree = ast.parse("async def f():\n" + "\n".join(
                    " " + line[deep:] for line in lines
                ))  # fmt: skip
                yield from map(ast.unparse, code_in(tree))


def code_in(tree):
    kinds = ast.BinOp | ast.Compare | ast.Call | ast.Subscript | ast.stmt
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, kinds) and not isinstance(node, ast.AsyncFunctionDef)
    ]


@pytest.mark.parametrize("stem", STEMS)
def test_no_level_holds_code_of_the_solution(stem):
    code = {"".join(some.split()) for some in code_of(stem)}
    code = {some for some in code if len(some) > 8}
    assert len(code) > 5
    text = (ROOT / "distlab" / "grading" / "more" / f"{stem}.txt").read_text()
    levels = re.findall(r"^more:\n(.*?)(?=^more:|^---|\Z)", text, re.DOTALL | re.M)
    assert len(levels) > 20
    for level in levels:
        squeezed = "".join(level.split())
        assert not [some for some in code if some in squeezed], level
