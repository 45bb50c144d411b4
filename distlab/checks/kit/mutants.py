"""Mutants of a solution: small changes that a check's public cases must notice.

    solution ──▶ mutants ──▶ graded on the steps that use them ──▶ killed, or survivor

A survivor gets all points of these steps. It shows a case that is missing, unless it
does the same as the solution; those are listed in variants/equivalent_mutants.toml:

    [[mutant]]
    cell = "reduce-scatter"
    before = "target = chunks[(place - step - 1) % n]"
    after = "target = chunks[place - step - 1]"
    why = "the index is at least -n, and counts from the end"
"""

import ast
import copy
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from distlab.checks.kit.answer_variants import concerned, names_in
from distlab.checks.kit.check_proof import AnswerRow, grade_notebook, notebook_parts
from distlab.checks.kit.contracts import published_cells
from distlab.errors import DistlabError

__all__ = ["Mutant", "equivalents", "mutants", "survivors"]

_PART = re.compile(r"### BEGIN SOLUTION\n.*?### END SOLUTION", re.DOTALL)
_COMPARED = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_COMPUTED = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv,
}
_SWAPPED = {"min": "max", "max": "min", "any": "all", "all": "any"}
_SWAPPED |= {"dst": "src", "src": "dst", "zeros": "ones", "ones": "zeros"}
_SWAPPED |= {"float32": "float16", "float64": "float32", "int64": "int32"}
_DROPPED = {"clone", "copy", "detach", "sorted", "reversed", "abs"}
_DROPPED |= {"contiguous", "float", "long", "int"}
_SIMPLE = ast.Expr | ast.AugAssign | ast.Break | ast.Continue
_UNSEEN = ("mark", "print")  # calls that change nothing that counts


@dataclass(frozen=True)
class Mutant:
    """One changed solution cell. before, after: the statement, or its first line."""

    cell: str
    before: str
    after: str
    source: str

    @property
    def key(self) -> tuple[str, str, str]:
        """The identity of the mutant in a list of equivalents."""
        return self.cell, self.before, self.after

    def __str__(self):
        return f"{self.cell}: {self.before}\n    -> {self.after}"


def mutants(cells: dict[str, str]) -> list[Mutant]:
    """Return all mutants of solution cells, given by name; no two are alike."""
    found = {}
    for name, source in cells.items():
        for mutant in _mutants(name, source):
            found.setdefault(mutant.key, mutant)
    return list(found.values())


def equivalents(solution: Path) -> dict[tuple[str, str, str], str]:
    """Return the listed equivalent mutants of an exercise, each with the reason.

    Raises: DistlabError for a list that cannot be read, or an entry without a reason.
    """
    path = solution / "variants" / "equivalent_mutants.toml"
    if not path.exists():
        return {}
    try:
        rows = tomllib.loads(path.read_text("utf-8")).get("mutant", [])
        return {(r["cell"], r["before"], r["after"]): r["why"] for r in rows}
    except (tomllib.TOMLDecodeError, KeyError) as error:
        raise DistlabError(f"{path}: {error}. An entry has cell, before, after, why.")


def survivors(
    solution: Path, show: Callable[[int, int, str], None] = lambda *_: None
) -> Iterator[Mutant]:
    """Yield the mutants that get all points by public cases, and are not listed.

    show: called with the number of mutants graded, of all, and the next one's cell.

    Raises: DistlabError for an entry of the list that is no mutant any more.
    """
    cells = published_cells(solution)
    answers, public, sources, points = notebook_parts(cells)
    known, every = equivalents(solution), mutants(answers)
    if stale := known.keys() - {mutant.key for mutant in every}:
        raise DistlabError(f"{solution.name} has no mutant {min(stale)} any more.")
    todo = [mutant for mutant in every if mutant.key not in known]
    for number, mutant in enumerate(todo):
        show(number, len(todo), mutant.cell)
        filled = answers | public | {mutant.cell: mutant.source}
        used = concerned(sources | filled, {mutant.cell})
        steps = [step for step in points if step in used]
        if all(_passes(cells, filled, step, sum(points.values())) for step in steps):
            yield mutant


def _passes(cells, filled, step, most):
    """Return True if a step gets its points. most: those of all steps together."""
    row = AnswerRow(step, most, "")
    try:
        grade_notebook(cells, filled, row, {step})
    except DistlabError:
        return False  # a cell that cannot be run
    return row.points == most


def _mutants(name, source):
    tree = ast.parse(source)
    lines = [
        (source.count("\n", 0, part.start()) + 1, source.count("\n", 0, part.end()) + 1)
        for part in _PART.finditer(source)
    ]
    for at, node in enumerate(ast.walk(tree)):
        if any(a <= getattr(node, "lineno", 0) <= b for a, b in lines):
            for number in range(len(_changes(copy.deepcopy(node)))):
                yield from _mutated(name, tree, at, number)
            if isinstance(node, ast.stmt):
                yield from _swapped(name, tree, at)


def _mutated(name, tree, at, number):
    """Yield the mutant of a cell in which one node has one of its changes."""
    anew = copy.deepcopy(tree)
    nodes = list(ast.walk(anew))
    statement = _statement_of(anew, nodes[at])
    if statement is None or _is_unseen(statement):
        return
    before, after = _line(statement), "(dropped)"
    if isinstance(nodes[at], _SIMPLE):
        _drop(_place(anew, statement), statement)
    else:
        _changes(nodes[at])[number]()
        after = _line(statement)
    if after != before:
        yield Mutant(name, before, after, ast.unparse(ast.fix_missing_locations(anew)))


def _swapped(name, tree, at):
    """Yield the mutant in which a statement and the one after it change places."""
    anew = copy.deepcopy(tree)
    statement = list(ast.walk(anew))[at]
    place = _place(anew, statement)
    two = place[(first := place.index(statement)) : first + 2]
    simple = all(isinstance(one, _SIMPLE | ast.Assign) for one in two)
    if len(two) < 2 or not simple or any(map(_is_unseen, two)) or _independent(*two):
        return
    lines = [_line(one) for one in two]
    place[first : first + 2] = two[::-1]
    yield Mutant(name, "; ".join(lines), "; ".join(lines[::-1]), ast.unparse(anew))


def _independent(one, other):
    """Return True if the order of two statements does not matter."""
    both = [*ast.walk(one), *ast.walk(other)]
    if any(isinstance(node, ast.Yield | ast.YieldFrom) for node in both):
        return False
    return not (_written(one) & names_in(other) or _written(other) & names_in(one))


def _written(statement):
    """Return the names of what a statement may change: targets, and what it calls."""
    targets = getattr(statement, "targets", [getattr(statement, "target", statement)])
    found = set().union(*(names_in(each) - _indices(each) for each in targets))
    calls = [node.func for node in ast.walk(statement) if isinstance(node, ast.Call)]
    return found.union(*map(names_in, calls))


def _indices(target):
    found = (node for node in ast.walk(target) if isinstance(node, ast.Subscript))
    return set().union(*(names_in(node.slice) for node in found))


def _changes(node):
    """Return functions that change a node in place, one way each."""
    found = []
    if isinstance(node, _SIMPLE):
        found.append(None)  # see `_drop`
    elif isinstance(node, ast.Compare):
        for at, operator in enumerate(node.ops):
            found.append(
                lambda at=at, o=operator: _set(node.ops, at, _COMPARED[type(o)]())
            )
    elif isinstance(node, ast.BinOp) and type(node.op) in _COMPUTED:
        found.append(lambda: setattr(node, "op", _COMPUTED[type(node.op)]()))
    elif isinstance(node, ast.BoolOp):
        other = ast.Or if isinstance(node.op, ast.And) else ast.And
        found.append(lambda: setattr(node, "op", other()))
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        found.append(lambda: setattr(node, "value", node.value + 1))
        found.append(lambda: setattr(node, "value", node.value - 1))
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        found.append(lambda: setattr(node, "value", not node.value))
    elif isinstance(node, ast.UnaryOp):
        found.append(lambda: _become(node, node.operand))
    elif isinstance(node, ast.If | ast.While | ast.IfExp):
        negated = ast.UnaryOp(ast.Not(), node.test)
        found.append(lambda: setattr(node, "test", negated))
    elif isinstance(node, ast.Attribute) and node.attr in ("rank", *_SWAPPED):
        if node.attr == "rank":
            found.append(lambda: _become(node, _text("0")))
        else:
            found.append(lambda: setattr(node, "attr", _SWAPPED[node.attr]))
    elif isinstance(node, ast.Name) and node.id in _SWAPPED:
        found.append(lambda: setattr(node, "id", _SWAPPED[node.id]))
    elif isinstance(node, ast.keyword) and node.arg in _SWAPPED:
        found.append(lambda: setattr(node, "arg", _SWAPPED[node.arg]))
    elif isinstance(node, ast.Call):
        found += _changes_of_call(node)
    return found


def _changes_of_call(node):
    found = []
    plain = not any(isinstance(argument, ast.Starred) for argument in node.args)
    symmetric = getattr(node.func, "id", "") in ("min", "max")
    if len(node.args) >= 2 and plain and not symmetric:
        found.append(lambda: node.args.__setitem__(slice(0, 2), node.args[1::-1]))
    for at in range(len(node.keywords)):
        found.append(lambda at=at: node.keywords.pop(at))
    function = node.func
    if isinstance(function, ast.Name) and function.id in _DROPPED and node.args:
        found.append(lambda: _become(node, node.args[0]))
    method = isinstance(function, ast.Attribute) and function.attr in _DROPPED
    if method and not node.args:
        found.append(lambda: _become(node, function.value))
    return found


def _set(items, at, item):
    items[at] = item


def _become(node, other):
    """Turn a node into another one in place."""
    node.__class__ = other.__class__
    node.__dict__ = dict(other.__dict__)


def _text(expression):
    return ast.parse(expression, mode="eval").body


def _statement_of(tree, node):
    """Return the innermost statement that has a node in it; None outside functions."""
    found = None
    for statement in ast.walk(tree):
        if isinstance(statement, ast.stmt) and any(
            n is node for n in ast.walk(statement)
        ):
            found = statement
    return found


def _drop(place, statement):
    if len(place) == 1:
        place[0] = ast.copy_location(ast.Pass(), statement)
    else:
        place.remove(statement)


def _place(tree, statement):
    """Return the list of statements that a statement is in."""
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            items = getattr(node, field, None)
            if isinstance(items, list) and any(item is statement for item in items):
                return items
    raise AssertionError("a statement is in no body")


def _is_unseen(statement):
    """Return True for docstrings, and for calls that change nothing that counts."""
    if not isinstance(statement, ast.Expr):
        return False
    called = getattr(statement.value, "func", None)
    name = getattr(called, "attr", getattr(called, "id", ""))
    return isinstance(statement.value, ast.Constant) or name in _UNSEEN


def _line(statement):
    """Return the text of a statement; of one with a body, its head."""
    text = ast.unparse(ast.fix_missing_locations(statement))
    if not hasattr(statement, "body"):
        return " ".join(text.split())
    return text.partition(":\n")[0]
