"""Sources of an exported script: the cells of a notebook, and distlab's files."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import distlab
from distlab.commands.exporting.statements import (
    Statement,
    statements_of,
    without_stubs,
)
from distlab.errors import DistlabError

__all__ = ["Source", "definition", "exported_name", "module_source", "notebook_source"]

_END = 10**9


@dataclass
class Source:
    """A notebook or a module: its statements, in order.

    name: the file's. unread: names of the cells that are not plain Python.
    until: the index up to which it has been run when its functions are called.
    """

    name: str
    statements: list[Statement]
    unread: list[str] = field(default_factory=list)
    until: int = _END

    def binding(self, name: str, before: int = _END) -> Statement | None:
        """Return the last statement before a place that binds `name`."""
        found = [s for s in self.statements if name in s.binds and s.place < before]
        return found[-1] if found else None

    def binding_once_called(self, name: str) -> Statement | None:
        """Return the statement that binds `name` for a function when it is called."""
        last = self.binding(name, self.until)
        return last or next((s for s in self.statements if name in s.binds), None)

    def run_until_cell_of(self, statement: Statement) -> None:
        """Set `until` to the end of the cell that contains `statement`."""
        same = [s.place for s in self.statements if s.where == statement.where]
        self.until = max(same) + 1


def exported_name(path: Path) -> str | None:
    """Return the function that a notebook's metadata names for export, if any.

    Raises: DistlabError if the file is not a notebook.
    """
    return _read(path).get("metadata", {}).get("distlab", {}).get("export")


def notebook_source(path: Path) -> Source:
    """Return the code cells of a notebook; cells with magics are left out.

    Raises: DistlabError if the file is not a notebook, or a cell imports a star.
    """
    source = Source(path.name, [])
    for number, cell in enumerate(_read(path)["cells"], 1):
        if cell.get("cell_type") != "code":
            continue
        where = f"cell {cell.get('id', number)}"
        text = "".join(cell["source"])
        try:
            text = without_stubs(text)
            found = statements_of(text, where, len(source.statements))
        except SyntaxError:
            source.unread.append(where)
            continue
        for statement in found:
            if statement.imported and statement.imported.name == "*":
                raise DistlabError(
                    f"{where} of {path.name} imports * from "
                    f"{statement.imported.module}, so that it is not known where a "
                    "name comes from. Import the names themselves."
                )
        source.statements += found
    return source


def module_source(name: str) -> Source:
    """Return a module or package of distlab, such as "distlab.train.models".

    Raises: DistlabError if there is none.
    """
    above = Path(distlab.__file__).parents[1]
    inside = Path(*name.split("."))
    for path in (above / inside.with_suffix(".py"), above / inside / "__init__.py"):
        if path.is_file():
            where = path.relative_to(above).as_posix()
            return Source(where, statements_of(path.read_text(), where))
    raise DistlabError(f"there is no module {name} in distlab.")


def definition(source: Source, name: str) -> Statement | None:
    """Return the statement that defines `name`, through imports of distlab's files.

    Raises: DistlabError if it comes from a module that distlab does not have.
    """
    found = source.binding(name)
    while found and (one := found.imported) and one.module.startswith("distlab."):
        found = module_source(one.module).binding(one.name)
    return found


def _read(path):
    try:
        notebook = json.loads(path.read_text())
        notebook["cells"], notebook["metadata"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DistlabError(f"{path} is not a notebook that can be read: {error!r}")
    return notebook
