"""Contents of the course: the lessons' cells and questions, the exercises' steps.

Read from the notebooks: those in which the learner has worked, and the course's.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path

from distlab.files import course_files

__all__ = ["Exercise", "Lesson", "find_course"]


@dataclass(frozen=True)
class Lesson:
    """A lesson: its title, its code cells' ids, and its number of predictions."""

    stem: str
    title: str
    cells: tuple[str, ...]
    predictions: int


@dataclass(frozen=True)
class Exercise:
    """An exercise: its title, and the points of each graded cell by its id."""

    stem: str
    title: str
    steps: dict[str, float] = field(default_factory=dict)


def find_course(held: dict) -> tuple[dict[str, Lesson], dict[str, Exercise]]:
    """Return lessons and exercises by stem, in order.

    held: the record, which names the notebooks that were open.
    """
    ours = [(place.split("/")[0], path) for place, path in course_files().items()]
    worked = {
        kind: [Path(entry["path"]) for entry in held[kind].values()]
        for kind in ("lessons", "exercises")
    }
    lessons, exercises = (
        [*worked[kind], *(path for of, path in ours if of == kind)]
        for kind in ("lessons", "exercises")
    )
    return _by_stem(lessons, _lesson), _by_stem(exercises, _exercise)


def _by_stem(paths, read):
    """Return `read`'s result for each notebook by stem; the last of a stem counts."""
    found = {}
    for path in paths:
        try:
            cells = json.loads(path.read_bytes())["cells"]
            found[path.stem] = read(path.stem, cells)
        except (OSError, ValueError, KeyError, TypeError):
            continue  # moved, or never a notebook: then the record alone is shown
    return dict(sorted(found.items()))


def _lesson(stem, cells):
    code = {
        cell.get("id", ""): "".join(cell["source"])
        for cell in cells
        if cell["cell_type"] == "code" and cell["source"]
    }
    asked = sum(source.count("predict(") for source in code.values())
    return Lesson(stem, _title(cells), tuple(code), asked)


def _exercise(stem, cells):
    graded = [
        (cell.get("id", ""), cell["metadata"].get("nbgrader", {})) for cell in cells
    ]
    steps = {name: meta["points"] for name, meta in graded if meta.get("grade")}
    return Exercise(stem, _title(cells), steps)


def _title(cells):
    lines = [
        line for cell in cells[:1] for line in "".join(cell["source"]).splitlines()
    ]
    return lines[0].lstrip("# ").strip() if lines else ""
