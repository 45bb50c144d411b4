"""What is known of a graded submission besides its marks, kept in its own notebook.

It is in the notebook's metadata, and so comes and goes with what has been graded.
"""

import hashlib
import json
import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

import nbformat
from nbformat.notebooknode import NotebookNode
from nbgrader.utils import determine_grade, is_grade

from distlab.grading.desk.choosing import plain_files

__all__ = ["Record", "fingerprint", "points_in", "read_result", "record_in", "sign"]

_KEY = "desk"


@dataclass(frozen=True)
class Record:
    """What grading one submission was like.

    isolation: what was in force. submitted: what tells it from any other submission.
    """

    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    isolation: str = ""
    submitted: str = ""


def fingerprint(folder: Path) -> str:
    """Return what changes when anything in a submission does, but its time."""
    digest = hashlib.sha256()
    for path in sorted(plain_files(folder)[0]):
        if path.name != "timestamp.txt":
            digest.update(str(path.relative_to(folder)).encode("utf-8", "replace"))
            with path.open("rb") as file:
                for part in iter(lambda: file.read(2**20), b""):
                    digest.update(part)
    return digest.hexdigest()


def sign(path: Path, record: Record) -> None:
    """Write a record into an autograded notebook."""
    notebook = json.loads(path.read_bytes())
    notebook["metadata"].setdefault("distlab", {})[_KEY] = asdict(record)
    aside = path.with_suffix(".new")
    aside.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")
    shutil.copymode(path, aside)
    os.replace(aside, path)


def read_result(path: Path) -> NotebookNode | None:
    """Return an autograded notebook; None if there is none, or none that was run."""
    try:
        notebook = nbformat.from_dict(json.loads(path.read_bytes()))
        ran = any(c.get("execution_count") or c.get("outputs") for c in notebook.cells)
    except (OSError, ValueError, AttributeError):
        return None
    return notebook if ran else None


def record_in(notebook: NotebookNode) -> Record:
    """Return the record of a notebook; an empty one if the desk did not grade it."""
    fields = notebook.metadata.get("distlab", {}).get(_KEY, {})
    return Record(**fields | {"notes": tuple(fields.get("notes", ()))})


def points_in(notebook: NotebookNode) -> dict[str, float | None]:
    """Return grade_id -> points, as nbgrader reads them off an autograded notebook."""
    return {
        cell.metadata.nbgrader.grade_id: determine_grade(cell)[0]
        for cell in notebook.cells
        if is_grade(cell)
    }
