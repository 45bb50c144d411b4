"""What a grade cell needs that it does not make itself, and who has it."""

import ast
import builtins
import contextlib
import symtable

__all__ = ["Known", "needed"]


def needed(source: str) -> list[str]:
    """Return the names that a cell uses and does not make, in their order.

    Raises: SyntaxError.
    """
    table = symtable.symtable(source, "cell", "exec")
    made = {s.get_name() for s in table.get_symbols() if _makes(s)}
    used = set(_globals_of(table)) - made - set(dir(builtins))
    places = [node.id for node in ast.walk(ast.parse(source)) if _is_name(node)]
    return sorted(used, key=places.index)


def _makes(symbol):
    return symbol.is_assigned() or symbol.is_imported()


def _globals_of(table):
    """Yield the names that a scope, or one inside of it, takes from the module."""
    top = table.get_type() == "module"
    for symbol in table.get_symbols():
        if symbol.is_referenced() and (top or symbol.is_global()):
            yield symbol.get_name()
    for inner in table.get_children():
        yield from _globals_of(inner)


def _is_name(node):
    return isinstance(node, ast.Name)


class Known:
    """What locked cells have said so far: constants, and where names come from.

    constants: name -> its value, if it was assigned a literal.
    imports: name -> (module, name in it or None).
    """

    def __init__(self):
        self.constants, self.imports = {}, {}

    def learn(self, source: str) -> None:
        """Take in a locked cell's source, as it is in the gradebook."""
        with contextlib.suppress(SyntaxError):  # some cells have IPython's magics
            for statement in ast.parse(source).body:
                self._take(statement)

    def _take(self, statement):
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                self._assign(target, statement.value)
        elif isinstance(statement, ast.Import):
            for alias in statement.names:
                if alias.asname or "." not in alias.name:
                    self.imports[alias.asname or alias.name] = alias.name, None
        elif isinstance(statement, ast.ImportFrom) and not statement.level:
            for alias in statement.names:
                name = alias.asname or alias.name
                self.imports[name] = statement.module, alias.name

    def _assign(self, target, value):
        names = [node.id for node in ast.walk(target) if _is_name(node)]
        for name in names:
            self.constants.pop(name, None)  # by now it is something else
        try:
            literal = ast.literal_eval(value)
        except ValueError:
            return
        if isinstance(target, ast.Name):
            self.constants[target.id] = literal
        elif isinstance(target, ast.Tuple) and len(names) == len(literal):
            self.constants.update(zip(names, literal, strict=True))
