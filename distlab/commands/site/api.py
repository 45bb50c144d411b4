"""The API page: the functions and classes of distlab that the lessons' code uses."""

import ast
import inspect
import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from types import ModuleType

__all__ = ["api_page", "plain_docstring"]

_DRAWN = re.compile("[─│▶◀]")
_ROW = re.compile(
    r"- |(?:[a-z_]+(?:, [a-z_]+)*|Raises|Returns|Cost|Source|Invariant|Called by): "
)
_HEAD = """API
===

The functions and classes of distlab that the lessons use, by the module that they are
imported from.
"""


def api_page(notebooks: Iterable[dict]) -> str:
    """Return the page of all names that the notebooks use, for Sphinx's autodoc."""
    used = {name for notebook in notebooks for name in _used(notebook)}
    lines, section, seen = [_HEAD], None, []
    for module, name in sorted(used):
        thing = _value(module, name)
        if thing in seen or not (inspect.isclass(thing) or inspect.isfunction(thing)):
            continue
        seen.append(thing)
        if module != section:
            section = module
            lines += ["", module, "-" * len(module), ""]
        kind = "autoclass" if inspect.isclass(thing) else "autofunction"
        lines += [f".. {kind}:: {module}.{name}"]
        lines += ["   :members:", ""] if kind == "autoclass" else [""]
    return "\n".join(lines)


def _used(notebook) -> Iterator[tuple[str, str]]:
    """Yield (module, name) of each object that a notebook imports from distlab.

    Of an imported module it yields the attributes used: show.player, etcd.cluster.
    """
    modules = {}
    code = (cell for cell in notebook["cells"] if cell["cell_type"] == "code")
    trees = [ast.parse("".join(cell["source"])) for cell in code]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(
            "distlab."
        ):
            for alias in node.names:
                if isinstance(_value(node.module, alias.name), ModuleType):
                    name = f"{node.module}.{alias.name}"
                    modules[alias.asname or alias.name] = name
                else:
                    yield node.module, alias.name
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = modules.get(node.value.id)
            if module and hasattr(import_module(module), node.attr):
                yield module, node.attr


def _value(module, name):
    found = getattr(import_module(module), name, None)
    return import_module(f"{module}.{name}") if found is None else found


def plain_docstring(app, what, name, thing, options, lines: list[str]) -> None:
    """Convert one of our docstrings, which are plain text, into reStructuredText."""
    blocks, drawn = [[]], False
    for line in lines:
        was, drawn = drawn, line.startswith("    ") or bool(_DRAWN.search(line))
        # A row such as "Raises: ..." is a paragraph of its own.
        if not line.strip() or drawn != was or (_ROW.match(line) and not drawn):
            blocks.append([])
        if line.strip():
            blocks[-1].append(line)
    lines[:] = "\n\n".join(map(_paragraph, filter(None, blocks))).splitlines()


def _paragraph(lines):
    if lines[0].startswith("    ") or _DRAWN.search(lines[0]):
        return "::\n\n" + "\n".join(f"    {line}" for line in lines)
    text = " ".join(map(str.strip, lines))
    parts = re.split(r"`([^`]+)`", text)
    parts[::2] = [re.sub(r"([*|\\]|_(?!\w))", r"\\\1", part) for part in parts[::2]]
    parts[1::2] = [f"``{code.strip()}``\\ " for code in parts[1::2]]
    text = "".join(parts)
    if not text.startswith("- ") and _ROW.match(f"{lines[0]} "):
        return "**{}:** {}".format(*text.split(": ", 1))
    return text
