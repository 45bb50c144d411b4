"""What a learner's solved notebook defines, for tests of a check."""

import json
from pathlib import Path

__all__ = ["learner_of"]

SOLUTIONS = Path(__file__).parents[1] / "solutions"


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
