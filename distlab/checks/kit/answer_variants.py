'''Variants: answers that are right in another way, or wrong in a known one.

A variant is a file in the folder `variants` beside the solution, `right_...` or
`wrong_...`, and holds only the differences from the solution:

    """Makes n steps where n - 1 are enough."""

    POINTS = 7.0
    HINT = "How many steps is that"           words that its verdicts must have
    REPLACE = {"range(n - 1)": "range(n)"}    old -> new, each once in all its cells

    def ring(comm, tensor):                   takes the place of the solution's `ring`
        ...

All the code of a variant goes into the first cell in which it replaces something.
'''

import ast
import re
from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path

from distlab.errors import DistlabError

__all__ = ["Variant", "concerned", "names_in", "read_variants"]

_MARKERS = re.compile(r"^[ \t]*### (BEGIN|END) SOLUTION\n?", re.MULTILINE)
_SETTINGS = {"POINTS": None, "HINT": None, "REPLACE": {}}


@dataclass(frozen=True)
class Variant:
    """One answer, with its expected points, and words of its expected hint.

    cells: the `grade_id` of each solution cell -> its source in this answer.
    changed: those whose source is not the solution's.
    """

    name: str
    about: str
    points: float
    hint: str
    cells: dict[str, str]
    changed: frozenset[str]

    @property
    def right(self) -> bool:
        """True if it should get all points."""
        return self.name.startswith("right")


def read_variants(
    folder: Path, solution: dict[str, str], *, those_that_fit: bool = False
) -> list[Variant]:
    """Return the variants in `folder`, sorted by name.

    solution: the `grade_id` of each solution cell -> its source.
    those_that_fit: True if those are left out that replace what is not in it.

    Raises: DistlabError with the file and its mistake.
    """
    bare = {name: _MARKERS.sub("", source) for name, source in solution.items()}
    found = []
    for path in sorted(folder.glob("*.py")):
        try:
            found.append(_read(path, bare))
        except DistlabError:
            if not those_that_fit:
                raise
    return found


def concerned(cells: dict[str, str], changed: Set[str]) -> set[str]:
    """Return the cells of a notebook whose behavior could differ after a change.

    cells: name -> source, in order. changed: the names of those with another source.
    """
    affected, found = set(), set(changed)
    for name, source in cells.items():
        if name in changed or names_in(ast.parse(source)) & affected:
            found.add(name)
            affected.update(*map(_defined, ast.parse(source).body))
    return found


def _read(path, solution):
    if not re.match("(right|wrong)_", path.name):
        raise DistlabError(f"{path}: its name begins neither with right_ nor wrong_.")
    source = path.read_text(encoding="utf-8")
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise DistlabError(f"{path}, line {error.lineno}: {error.msg}.")
    about = ast.get_docstring(tree)
    if not about:
        raise DistlabError(f"{path} has no docstring that says what it does.")
    settings, code = _settings(path, tree.body[1:])
    if settings["POINTS"] is None or settings["HINT"] is None:
        raise DistlabError(
            f'{path} has no POINTS or no HINT; a right one has HINT = "".'
        )
    cells = _replaced(path, solution, settings["REPLACE"])
    for name, cell in cells.items():
        try:
            ast.parse(cell)
        except SyntaxError as error:
            raise DistlabError(
                f"{path}: with it cell {name}, line {error.lineno}, is no Python: "
                f"{error.msg}."
            ) from None
    placed = _placed(path, cells, source, code)
    changed = frozenset(name for name in placed if placed[name] != solution[name])
    points, words = float(settings["POINTS"]), settings["HINT"]
    return Variant(path.stem, about, points, words, placed, changed)


def _settings(path, statements):
    """Return the settings by name, and the statements that are no settings."""
    settings, code = dict(_SETTINGS), []
    for statement in statements:
        names = _defined(statement) & settings.keys()
        if names:
            try:
                settings[names.pop()] = ast.literal_eval(statement.value)
            except ValueError:
                raise DistlabError(f"{path}, line {statement.lineno}: not a literal.")
        else:
            code.append(statement)
    return settings, code


def _replaced(path, cells, changes):
    """Return the cells with every old text replaced by its new one."""
    cells = dict(cells)
    for old, new in changes.items():
        found = [name for name in cells for _ in range(cells[name].count(old))]
        if len(found) != 1:
            raise DistlabError(
                f"{path}: REPLACE wants to change {old!r}, which the solution has "
                f"{len(found)} times. Give more of the lines around it."
            )
        cells[found[0]] = cells[found[0]].replace(old, new)
    return cells


def _placed(path, cells, source, code):
    """Return the cells with the variant's code in place of the names it redefines.

    All of it goes into the first cell that it changes: its functions may call each
    other, and a check runs before the cells after it.
    """
    if not code:
        return cells
    anew = set().union(*map(_defined, code))
    kept = {name: _without(cell, anew) for name, cell in cells.items()}
    changed = [name for name in cells if kept[name] != cells[name]]
    known = set().union(*(names_in(ast.parse(cell)) for cell in cells.values()))
    if anew and not changed and not anew & known:
        raise DistlabError(
            f"{path} defines {', '.join(sorted(anew))}, which is in no cell of the "
            "solution and takes the place of nothing."
        )
    first = (changed or list(cells))[0]
    own = "\n\n".join(_text(source, statement) for statement in code)
    return kept | {first: f"{kept[first]}\n\n\n{own}".lstrip()}


def _without(cell, names):
    """Return the cell without the statements that define or change one of the names."""
    statements = [each for each in ast.parse(cell).body if not _defined(each) & names]
    if len(statements) == len(ast.parse(cell).body):
        return cell
    return "\n\n\n".join(_text(cell, statement) for statement in statements)


def _text(source, statement):
    decorators = getattr(statement, "decorator_list", ())
    first = min(each.lineno for each in (statement, *decorators))
    return "\n".join(source.splitlines()[first - 1 : statement.end_lineno])


def names_in(node: ast.AST) -> set[str]:
    """Return the names that are used or assigned in a syntax tree."""
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _defined(statement):
    """Return the names that a top-level statement defines, or whose items it sets."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return {statement.name}
    targets = getattr(statement, "targets", ())
    named = (getattr(each, "value", each) for each in targets)
    return {each.id for each in named if isinstance(each, ast.Name)}
