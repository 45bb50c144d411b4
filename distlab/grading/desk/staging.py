"""Where one submission is graded: aside, so that only whole results are ever seen.

    submitted/anna/10_ring ──▶ aside/7/submitted/anna/10_ring    read, mended, copied
                                          │ nbgrader
                               aside/7/autograded/anna/10_ring
                                          │ one rename
                               autograded/anna/10_ring

nbgrader writes its marks into the gradebook before the rename. Whoever dies in between,
at whatever moment, leaves no folder in `autograded` (or the older one), so that the
submission is graded once more, and its marks are written over.
"""

import os
import shutil
import stat
from pathlib import Path

import nbformat

from distlab.grading.desk.choosing import choose, plain_files
from distlab.grading.desk.handed import Handed, timestamp_of
from distlab.grading.desk.mending import Reference, mend
from distlab.grading.desk.reading import Unreadable
from distlab.grading.marking.restored import MOST_CELLS
from distlab.units import readable_bytes

__all__ = ["lay_out", "put_in_place"]


def lay_out(
    handed: Handed, references: dict[str, Reference], folder: Path, largest_kb: int
) -> list[str]:
    """Copy a submission into `folder`, its notebooks mended; return what was odd.

    Raises: Unreadable, if one of the assignment's notebooks is not there.
    """
    folder.mkdir(parents=True)
    notes = list(handed.notes)
    for name, reference in references.items():
        notebook, odd = choose(handed.folder, name, reference)
        if len(notebook.cells) > MOST_CELLS:
            said = f"it has {len(notebook.cells):,} cells; {MOST_CELLS:,} are read"
            raise Unreadable(f"{name}.ipynb: {said}")
        notes += odd + mend(notebook, reference)
        notebook.nbformat, notebook.nbformat_minor = 4, 5
        _, notebook = nbformat.validator.normalize(notebook)
        with (folder / f"{name}.ipynb").open("w", encoding="utf-8") as file:
            nbformat.write(notebook, file)
    files, left_out = plain_files(handed.folder)
    notes += left_out
    for path in files:
        if path.name == "timestamp.txt" and path.parent == handed.folder:
            notes += _copy_timestamp(handed.folder, folder)
        elif not path.name.lower().endswith((".ipynb", ".zip")):
            notes += _copy(path, handed.folder, folder, largest_kb)
    return notes


def put_in_place(whole: Path, place: Path) -> None:
    """Make `whole` what is at `place`; it is whole there even if the power fails."""
    for folder, _, names in os.walk(whole):
        for name in names:
            _flush(os.path.join(folder, name))
        _flush(folder)
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.exists():
        old = whole.parent / "replaced"
        place.rename(old)
        shutil.rmtree(old)
    whole.rename(place)
    _flush(place.parent)


def _copy_timestamp(source, folder):
    try:
        timestamp_of(source)
    except ValueError:
        return ["timestamp.txt holds no time, so it counts as in time"]
    shutil.copyfile(source / "timestamp.txt", folder / "timestamp.txt")
    return []


def _copy(path, source, folder, largest_kb):
    relative = path.relative_to(source)
    size = path.stat().st_size
    if size > largest_kb * 1000:
        return [f"{relative} left out: it has {readable_bytes(size)}"]
    target = folder / relative
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        shutil.copyfile(path, target)
    except OSError as error:
        return [f"{relative} left out: {error.strerror}"]
    return []


def _flush(path):
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if stat.S_ISREG(os.fstat(descriptor).st_mode) or os.path.isdir(path):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
