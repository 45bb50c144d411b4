"""Folders of real systems: their installed packages, and a place for their files.

`environment` changes variables of the environment for the duration of a block.
"""

import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from distlab.errors import WorkdirError

__all__ = [
    "cannot_write",
    "environment",
    "is_open",
    "package_folder",
    "place_for_files",
]

_LONGEST = 60  # of a folder's path; a socket's path has at most 104 characters


def package_folder(name: str) -> Path:
    """Return the folder of an installed package, without importing it."""
    return Path(find_spec(name).origin).resolve().parent


def place_for_files(user: str | None) -> str:
    """Return a folder that `user` can reach, with a path short enough for sockets.

    Raises: WorkdirError if nothing can be written there.
    """
    place = tempfile.gettempdir()
    if os.path.isdir(place) and not (len(place) < _LONGEST and is_open(place, user)):
        place = "/tmp"
    if not os.access(place, os.W_OK | os.X_OK):
        raise cannot_write(place, "not there, or not yours to write to")
    return place


def cannot_write(place: str, why: str) -> WorkdirError:
    """Return the error for a place where a store cannot make its folder."""
    return WorkdirError(
        f"a store needs a folder for its files, and none can be made in {place}: "
        f"{why}. Set TMPDIR to a folder that you may write to, and start the notebook "
        "again."
    )


def is_open(place: str | Path, user: str | None) -> bool:
    """Return True if `user`, who is not root, can reach a folder."""
    whole = [Path(place), *Path(place).resolve().parents]
    return user is None or all(p.stat().st_mode & stat.S_IXOTH for p in whole)


@contextmanager
def environment(names: Mapping[str, str]) -> Iterator[None]:
    """Add `names` to the environment for a block; restore all of it at the end."""
    before = dict(os.environ)
    os.environ.update(names)
    try:
        yield
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)
