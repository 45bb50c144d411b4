"""What notebooks define: a learner's solved one, for tests of a check, or a lesson."""

import ast
import json
from contextlib import suppress
from pathlib import Path

__all__ = ["functions_of", "learner_of"]

SOLUTIONS = Path(__file__).parents[1] / "solutions"
LESSONS = SOLUTIONS.parent / "lessons"


def learner_of(stem: str, old: str = "", new: str = "") -> dict:
    """Return what a learner's notebook defines, with one text of it changed."""
    cells = json.loads((SOLUTIONS / stem / f"{stem}.ipynb").read_text())["cells"]
    graded = [
        c for c in cells if c["metadata"].get("nbgrader", {}).get("grade") is False
    ]
    source = "\n\n".join("".join(cell["source"]) for cell in graded)
    assert old in source
    space = {"__name__": "__main__"}
    exec(source.replace(old, new), space)
    return space


def functions_of(stem: str) -> dict:
    """Return what a lesson's cells define and import; a stub is its fallback."""
    space = {"__name__": "__main__"}
    cells = json.loads((LESSONS / f"{stem}.ipynb").read_text())["cells"]
    for cell in (cell for cell in cells if cell["cell_type"] == "code"):
        for node in ast.parse("".join(cell["source"])).body:
            if not isinstance(node, ast.FunctionDef | ast.Import | ast.ImportFrom):
                continue
            decorators = getattr(node, "decorator_list", [])
            if fallbacks := [k.value for d in decorators for k in d.keywords]:
                node = ast.parse(f"{node.name} = {ast.unparse(fallbacks[0])}").body[0]
            with suppress(NameError):  # a default that a cell computes
                exec(compile(ast.Module([node], []), stem, "exec"), space)
    return space
