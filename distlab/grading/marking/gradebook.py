"""What the gradebook knows of an exercise: the one source of what is marked."""

from typing import NamedTuple

from nbgrader.api import Gradebook
from nbgrader.preprocessors import ClearHiddenTests

__all__ = ["Known", "Release", "grade_id_of", "hides_between", "release_of"]


def hides_between(config) -> tuple[str, str]:
    """Return what begins and what ends a hidden region in the course of a config."""
    hiding = ClearHiddenTests(config=config)
    return hiding.begin_test_delimeter, hiding.end_test_delimeter


class Known(NamedTuple):
    """A cell that nbgrader knows. points: None where there are none to earn."""

    name: str
    kind: str
    source: str
    checksum: str
    locked: bool
    solution: bool
    grade: bool
    task: bool
    points: float | None

    @property
    def marked(self) -> bool:
        """Whether checks give its points, and not somebody by hand."""
        return self.grade and not self.solution and self.kind == "code"

    def metadata(self) -> dict:
        """Return the metadata by which nbgrader knows the cell."""
        told = {"schema_version": 3, "grade_id": self.name, "cell_type": self.kind}
        told |= {"locked": self.locked, "grade": self.grade, "task": self.task}
        told |= {"solution": self.solution, "checksum": self.checksum}
        return told | ({} if self.points is None else {"points": self.points})


class Release(NamedTuple):
    """An exercise's cells by name, and the names in the order of the exercise.

    ordered: whether that order is sure; the gradebook itself does not keep one.
    """

    cells: dict[str, Known]
    order: list[str]
    ordered: bool


def grade_id_of(cell) -> str | None:
    """Return the name that a notebook's cell claims, if it claims one."""
    told = cell.get("metadata")
    told = told.get("nbgrader") if isinstance(told, dict) else None
    name = told.get("grade_id") if isinstance(told, dict) else None
    return name if isinstance(name, str) else None


def release_of(resources: dict, source=None) -> Release:
    """Return what the gradebook has of the notebook that nbgrader is converting.

    source: the instructor's notebook, which knows the order of the cells, or None.
    """
    where = resources["nbgrader"]
    with Gradebook(where["db_url"]) as gradebook:
        notebook = gradebook.find_notebook(where["notebook"], where["assignment"])
        cells = {cell.name: _known(notebook, cell) for cell in notebook.source_cells}
    order = [] if source is None else [grade_id_of(cell) for cell in source.cells]
    order = [name for name in order if name in cells]
    sure = len(order) == len(cells)
    return Release(cells, order if sure else list(cells), sure)


def _known(notebook, cell):
    """Return one source cell; what it is for is in the notebook's other tables."""
    graded = {one.name: one.max_score for one in notebook.grade_cells}
    tasks = {one.name: one.max_score for one in notebook.task_cells}
    solution = any(one.name == cell.name for one in notebook.solution_cells)
    return Known(
        name=cell.name,
        kind=cell.cell_type,
        source=cell.source,
        checksum=cell.checksum,
        locked=cell.locked,
        solution=solution,
        grade=cell.name in graded,
        task=cell.name in tasks,
        points=(graded | tasks).get(cell.name),
    )
