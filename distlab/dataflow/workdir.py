"""The folder for all files of one job or Context."""

import os
import tempfile

from distlab.errors import WorkdirError
from distlab.processes.folders import new_folder

__all__ = ["folder_in"]


def folder_in(workdir: str | os.PathLike | None) -> str:
    """Make a folder in workdir, or in the default folder; return its path.

    Raises: WorkdirError.
    """
    try:
        if workdir is None:
            return new_folder(in_memory=False)
        os.makedirs(workdir, exist_ok=True)
        return tempfile.mkdtemp(prefix=".distlab-", dir=os.path.abspath(workdir))
    except OSError as error:
        where = "the folder for temporary files"
        where = where if workdir is None else f"workdir {str(workdir)!r}"
        raise WorkdirError(f"{where} cannot be used: {error}.") from None
