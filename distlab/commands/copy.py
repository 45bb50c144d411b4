"""A learner's own copy of the course, and updates of it to a newer version.

    the course, in a clone or a wheel
      ├─▶ ~/distlab-course/lessons/10_ring.ipynb            the learner's, to edit
      └─▶ ~/distlab-course/.distlab/lessons/10_ring.ipynb   the original

A file that equals its original, outputs aside, is replaced by the new version. One that
the learner edited stays, and the new version is put beside it, as 10_ring.new.ipynb.
"""

import json
import re
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from distlab.errors import DistlabError
from distlab.files import write_whole

__all__ = ["Update", "update"]

_GIVEN = ".distlab"


@dataclass
class Update:
    """The result of an update: paths of files in the course.

    kept: file that the learner edited -> name of the new version beside it.
    left: files that are no longer part of the course; they stay.
    """

    copied: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)


def update(folder: Path, course: dict[str, Path]) -> Update:
    """Copy `course` into a learner's folder; overwrite no file that they edited.

    Raises: DistlabError if the folder cannot be written.
    """
    done = Update()
    try:
        for place, source in course.items():
            _bring(folder, place, source, done)
        done.left = _left(folder, course)
    except OSError as error:
        raise DistlabError(
            f"the course cannot be copied to {folder}: {error}. Name another folder: "
            "distlab lab --folder somewhere"
        )
    return done


def _bring(folder, place, source, done):
    mine, given = folder / place, folder / _GIVEN / place
    new = _content(source)
    if not mine.exists():
        done.copied.append(place)
    elif given.exists() and _content(given) == new:
        return
    elif _content(mine) in (new, given.exists() and _content(given)):
        done.updated.append(place)
    else:
        beside = _free(folder, place, new)
        done.kept[place] = beside.name
        _copy(source, beside)
        _copy(source, folder / _GIVEN / beside.relative_to(folder))
        _copy(source, given)
        return
    _copy(source, mine)
    _copy(source, given)


def _left(folder, course):
    """Return the files of an earlier version only; each is reported once."""
    found, given = [], folder / _GIVEN
    tops = sorted({place.split("/")[0] for place in course})
    for path in (path for top in tops for path in sorted((given / top).rglob("*.*"))):
        place = path.relative_to(given).as_posix()
        if place not in course and not re.search(r"\.new\d*\.\w+$", place):
            path.unlink()
            found += [place] if (folder / place).exists() else []
    return found


def _free(folder, place, new):
    """Return a path beside a file that is free, or has an unedited version."""
    path = folder / place
    for number in count(1):
        mark = ".new" if number == 1 else f".new{number}"
        beside = path.with_name(f"{path.stem}{mark}{path.suffix}")
        given = folder / _GIVEN / beside.relative_to(folder)
        if not beside.exists() or (
            given.exists() and _content(beside) in (new, _content(given))
        ):
            return beside


def _content(path):
    """Return the part of a file that people write: of a notebook its cells' sources."""
    text = path.read_bytes()
    if path.suffix == ".ipynb":
        try:
            cells = json.loads(text)["cells"]
            return [(c["cell_type"], "".join(c["source"])) for c in cells]
        except (ValueError, KeyError, TypeError):
            pass  # no notebook any more, so all of it is the learner's
    return text


def _copy(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    write_whole(target, source.read_bytes(), mode=0o644)
