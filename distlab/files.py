"""Files that are whole at every moment."""

import os
import tempfile
from pathlib import Path

__all__ = ["write_whole"]


def write_whole(path: Path, text: str) -> None:
    """Write the whole file, or leave it as it was.

    Raises: OSError, as writing in the file's folder does.
    """
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(draft, path)
    except BaseException:
        os.unlink(draft)
        raise
