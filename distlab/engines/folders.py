"""Where real systems are, and where they put their files."""

import os
import shutil
import stat
import tempfile
from importlib.util import find_spec
from pathlib import Path

from distlab.errors import WorkdirError

__all__ = ["is_open", "new_folder", "package_folder"]

_LONGEST = 60  # of a path, which for a socket is 104 at most, with all in it


def package_folder(name: str) -> Path:
    """Return the folder of an installed package, without importing it."""
    return Path(find_spec(name).origin).resolve().parent


def new_folder(title: str, user: str | None) -> str:
    """Make a folder that `user` may write to, with a path short enough for sockets."""
    place = tempfile.gettempdir()
    if os.path.isdir(place) and not (len(place) < _LONGEST and is_open(place, user)):
        place = "/tmp"
    try:
        folder = tempfile.mkdtemp(prefix=f"distlab-{title}-", dir=place)
    except OSError as error:
        raise WorkdirError(
            f"{title} needs a folder for its files, and none can be made in {place}: "
            f"{error.strerror}. Set TMPDIR to a folder that you may write to, and "
            "start the notebook again."
        ) from error
    if user is not None:
        shutil.chown(folder, user)
    return folder


def is_open(place: str | Path, user: str | None) -> bool:
    """Return whether a user, who is not root, can come to a folder."""
    whole = [Path(place), *Path(place).resolve().parents]
    return user is None or all(p.stat().st_mode & stat.S_IXOTH for p in whole)
