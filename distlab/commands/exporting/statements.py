"""Statements of Python source, with the names that each one binds and needs.

    width = 64                       binds width
    def make(n=width): GPT(n)        binds make; needs width now, and GPT once called

A name needed now must be bound by a statement before it. A name needed later must be
bound only when the function is called, and so its statement may come after it.
"""

import ast
import symtable
from dataclasses import dataclass

import distlab

__all__ = ["Import", "Statement", "imported_path", "statements_of", "without_stubs"]

_AT_ONCE = ("listcomp", "setcomp", "dictcomp", "genexpr")


@dataclass(frozen=True)
class Import:
    """One name of an import: `import module as bound`, or `from module import name`."""

    module: str
    name: str | None
    bound: str
    alias: str | None = None


@dataclass(frozen=True)
class Statement:
    """One or more statements that begin in the same line, with the comments above.

    where: the name of the cell or file. line: the first one, comments included.
    place: its index among all statements of its source.
    imported: the import, if it is one name of an import; it has no text then.
    """

    text: str
    where: str
    place: int
    line: int
    binds: frozenset[str]
    now: frozenset[str] = frozenset()
    later: frozenset[str] = frozenset()
    imported: Import | None = None

    @property
    def is_block(self) -> bool:
        """True if it is a function or class, which needs blank lines around it."""
        first = ast.parse(self.text).body[0]
        return isinstance(first, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef)


def statements_of(source: str, where: str, first: int = 0) -> list[Statement]:
    """Return the statements of `source`, each name of a plain import by itself.

    first: the index of the first one.
    Raises: SyntaxError.
    """
    lines, found, end = source.splitlines(), [], 0
    for nodes in _by_line(ast.parse(source).body):
        start = min(_first_line(node) for node in nodes) - 1
        while start > end and lines[start - 1].startswith("#"):
            start -= 1
        end = max(node.end_lineno for node in nodes)
        named = [name for node in nodes for name in _imports(node)]
        if all(isinstance(node, ast.Import | ast.ImportFrom) for node in nodes):
            for name in named:
                bound = frozenset([name.bound])
                place = first + len(found)
                found.append(Statement("", where, place, start, bound, imported=name))
            continue
        text = "\n".join(lines[start:end])
        names = _names(text, nodes)
        found.append(Statement(text, where, first + len(found), start, *names))
    return found


def without_stubs(source: str) -> str:
    """Return a cell with each `@stub(fallback=...)` resolved, as its run resolves it.

    A stub that the learner has written loses the decorator; an unwritten one becomes a
    second name of its fallback.
    """
    lines = source.splitlines()
    for node in reversed(ast.parse(source).body):
        marks = [m for m in getattr(node, "decorator_list", ()) if _is_stub(m)]
        if not marks:
            continue
        start, end = marks[0].lineno - 1, marks[0].end_lineno
        if all(isinstance(each, ast.Expr | ast.Pass) for each in node.body) and all(
            isinstance(getattr(each, "value", None), ast.Constant | None)
            for each in node.body
        ):
            end = node.end_lineno
            lines[start:end] = [
                f"{node.name} = {ast.unparse(marks[0].keywords[0].value)}"
            ]
        else:
            del lines[start:end]
    return "\n".join(lines)


def _is_stub(decorator):
    called = getattr(decorator, "func", None)
    return isinstance(called, ast.Name) and called.id == "stub"


def imported_path(one: Import) -> str:
    """Return the bound object's dotted path, the same for all ways to import it."""
    if one.name:
        return f"{one.module}.{one.name}"
    return one.module if one.alias else one.bound


def _by_line(body):
    """Return the statements in groups that share a line."""
    groups = []
    for node in body:
        if groups and _first_line(node) <= groups[-1][-1].end_lineno:
            groups[-1].append(node)
        else:
            groups.append([node])
    return groups


def _first_line(node):
    decorators = getattr(node, "decorator_list", [])
    return min(each.lineno for each in (node, *decorators))


def _imports(node):
    """Yield the names that an import statement binds."""
    if isinstance(node, ast.Import):
        for each in node.names:
            bound = each.asname or each.name.split(".")[0]
            yield Import(each.name, None, bound, each.asname)
    elif isinstance(node, ast.ImportFrom):
        module = "." * node.level + (node.module or "")
        for each in node.names:
            home = distlab.WHERE.get(each.name) if module == "distlab" else None
            bound = each.asname or each.name
            yield Import(home or module, each.name, bound, each.asname)


def _names(text, nodes):
    """Return the names that a statement binds, needs now, and needs later."""
    table = symtable.symtable(text, "cell", "exec")
    symbols = table.get_symbols()
    binds = {s.get_name() for s in symbols if s.is_assigned() or s.is_imported()}
    now = {s.get_name() for s in symbols if s.is_referenced()}
    later = set()
    for child in table.get_children():
        _add_globals(child, now, later)
    changed = set(_changed(nodes))
    return frozenset(binds | changed), frozenset(now | changed), frozenset(later)


def _add_globals(table, now, later):
    """Add the globals of a function or class, and of all that is inside it."""
    runs_now = table.get_type() == "class" or table.get_name() in _AT_ONCE
    names = now if runs_now else later
    for symbol in table.get_symbols():
        if symbol.is_global():
            names.add(symbol.get_name())
    for child in table.get_children():
        _add_globals(child, names, later)


def _changed(nodes):
    """Yield the names whose value is changed in place: `x += 1`, `x["a"] = 1`."""
    for node in nodes:
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        for target in targets:
            if isinstance(node, ast.AugAssign) and isinstance(target, ast.Name):
                yield target.id
            while isinstance(target, ast.Attribute | ast.Subscript):
                target = target.value
                if isinstance(target, ast.Name):
                    yield target.id
