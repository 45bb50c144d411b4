"""What a submission has beside its notebook, and may read while it is graded."""

import os
import shutil
from pathlib import Path

__all__ = ["copy_belongings"]

_MOST_BYTES = 2**28


def copy_belongings(resources: dict, preprocessor, target: str) -> None:
    """Copy the files beside a notebook to a folder.

    Notebooks stay away, since theirs is the gradebook's source by now, with its hidden
    cases; so do links, which might lead to what only the instructor may read.
    """
    home = Path(resources.get("metadata", {}).get("path") or ".")
    handed_in = _handed_in(resources, preprocessor)
    room = _MOST_BYTES
    for folder, _, names in os.walk(home):
        inner = Path(folder).relative_to(home)
        for name in names:
            path = Path(folder, name)
            if name.endswith(".ipynb") or not path.is_file() or path.is_symlink():
                continue
            if handed_in is not None and _is_link(handed_in, inner / name):
                continue
            room -= path.stat().st_size
            if room < 0:
                preprocessor.log.warning("%s: its files are too large", home)
                return
            Path(target, inner).mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, Path(target, inner, name))


def _handed_in(resources, preprocessor):
    """Return the folder that was submitted, or None."""
    converter = getattr(preprocessor.parent, "parent", None)
    course = getattr(converter, "coursedir", None)
    if course is None:
        return None
    where = resources["nbgrader"]
    student, assignment = where["student"], where["assignment"]
    return Path(course.format_path(course.submitted_directory, student, assignment))


def _is_link(folder, inner):
    """Return whether a path below a folder goes through a link."""
    above = [inner, *inner.parents][:-1]
    return any(Path(folder, part).is_symlink() for part in above)
