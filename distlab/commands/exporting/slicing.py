"""Slices of a notebook: a function with all statements that it depends on.

    train (cell) ─▶ warm_up (cell) ─▶ RATE (cell)
          └───────▶ GPT (distlab/train/models.py) ─▶ Block ─▶ nn (torch)

The slice is of the notebook's state after the function's cell has run: of two
definitions of one name the later counts, unless it comes after that cell.
"""

import ast
import builtins
import graphlib
from dataclasses import dataclass

from distlab.commands.exporting.sources import Source, module_source
from distlab.commands.exporting.statements import Import, Statement, imported_path
from distlab.errors import DistlabError

__all__ = ["Slice", "slice_of"]

_OF_EVERY_MODULE = {"__name__", "__file__", "__doc__"}
_TAKEN_ALONG = ("distlab.train.", "distlab.errors", "distlab.units")


@dataclass
class Slice:
    """A slice: statements in an order in which they run, and imports.

    future: names imported from `__future__`.
    """

    statements: list[Statement]
    imports: list[Import]
    future: set[str]


def slice_of(notebook: Source, function: Statement, reserved: dict[str, str]) -> Slice:
    """Return the slice of `function`, a statement of `notebook`.

    reserved: name that the script itself binds -> its value's description.
    Raises: DistlabError if a name is missing, or does not work without distlab.
    """
    slicer = _Slicer(notebook, reserved)
    slicer.take(notebook, function)
    return slicer.result()


class _Slicer:
    """A traversal of names from statement to statement.

    modules: the distlab modules of taken statements. taken: source -> place ->
    statement. needs: source -> the sources it depends on.
    owners: name -> its source; the script has only one namespace.
    """

    def __init__(self, notebook, reserved):
        self.notebook = notebook
        self.modules = {}
        self.taken = {notebook.name: {}}
        self.needs = {notebook.name: set()}
        self.owners = dict(reserved)

    def take(self, source, statement, asker=None):
        """Take a statement that `asker` depends on, and its own dependencies."""
        if statement.place in self.taken[source.name]:
            return
        one = statement.imported
        if one and _is_ours(one.module):
            self._take_from_library(source, statement, asker)
            return
        self.taken[source.name][statement.place] = statement
        if one:
            self._own(one.bound, imported_path(one))
            for other in source.statements:  # import a.b and import a.c are both `a`
                if other.imported and other.imported.bound == one.bound:
                    self._take_twin(source, one, other)
            return
        _refuse_hidden_imports(statement)
        for name in sorted(statement.binds - statement.now):
            self._own(name, source.name)
        for name in sorted(statement.now):
            self._follow(source, statement, name, source.binding(name, statement.place))
        for name in sorted(statement.later):
            self._follow(source, statement, name, source.binding_once_called(name))

    def result(self):
        """Return the slice, in which a statement's dependencies come before it."""
        order = graphlib.TopologicalSorter(self.needs).static_order()
        taken = [s for name in order for _, s in sorted(self.taken[name].items())]
        sources = [self.notebook, *self.modules.values()]
        imports = [s.imported for one in sources for s in one.statements if s.imported]
        return Slice(
            [s for s in taken if not s.imported],
            [s.imported for s in taken if s.imported],
            {one.name for one in imports if one.module == "__future__"},
        )

    def _take_twin(self, source, one, other):
        if not (one.name or one.alias or other.imported.name or other.imported.alias):
            self.taken[source.name][other.place] = other

    def _own(self, name, owner):
        other = self.owners.setdefault(name, owner)
        if other != owner:
            raise DistlabError(
                f"a script has one meaning for each name, and {name} has two here: "
                f"one from {other}, one from {owner}. Rename one of them."
            )

    def _follow(self, source, statement, name, found):
        if found is not None:
            self.take(source, found, statement)
        elif name not in _OF_EVERY_MODULE and not hasattr(builtins, name):
            raise DistlabError(_missing(self.notebook, statement, name))

    def _take_from_library(self, source, statement, asker):
        one, asker = statement.imported, asker or statement
        _refuse_what_needs_distlab(statement, asker)
        if one.module not in self.modules:
            module = self.modules[one.module] = module_source(one.module)
            self.taken[module.name], self.needs[module.name] = {}, set()
        module = self.modules[one.module]
        found = module.binding(one.name)
        if found is None:
            raise DistlabError(
                f"{statement.where} imports {one.name}, which is not in {one.module}."
            )
        self.needs[source.name].add(module.name)
        try:
            self.take(module, found)
        except DistlabError as error:
            raise DistlabError(f"{asker.where} needs {one.name}, and {error}")


def _is_ours(module):
    return module.split(".")[0] == "distlab"


def _refuse_hidden_imports(statement):
    """Refuse an import of distlab inside a function, or under an `if` or `try`."""
    for node in ast.walk(ast.parse(statement.text)):
        modules = [getattr(node, "module", None) or ""]
        if isinstance(node, ast.Import):
            modules = [each.name for each in node.names]
        if isinstance(node, ast.Import | ast.ImportFrom) and any(
            map(_is_ours, modules)
        ):
            raise DistlabError(
                f"{statement.where} imports {modules[0]} inside another statement. "
                "Import it at the top of a cell, so that it can be taken along."
            )


def _refuse_what_needs_distlab(statement, asker):
    one = statement.imported
    said = f"{asker.where} needs {one.bound}"
    if asker.where != statement.where:
        said += f" (imported in {statement.where})"
    if one.name is None or one.module == "distlab.train" or one.alias:
        raise DistlabError(
            f"{said}. What a script is to take along is imported by its own name, as "
            "in `from distlab.train.models import GPT`."
        )
    if not one.module.startswith(_TAKEN_ALONG):
        raise DistlabError(
            f"{said}, which is {imported_path(one)} and works inside distlab only, "
            "with its launcher or its Comm. A script that is to run without them uses "
            "torch.distributed for it."
        )


def _missing(notebook, statement, name):
    said = f"{statement.where} uses {name}, which is defined nowhere before it is used."
    if notebook.unread:
        cells = ", ".join(notebook.unread)
        said += f" Not plain Python, and so left out: {cells}."
    return said
