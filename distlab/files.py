"""Atomic writing of files, and the course's own notebooks."""

import os
import tempfile
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

__all__ = ["course_files", "write_whole"]


def course_files() -> dict[str, Path]:
    """Return path in the course -> file, of the lessons, exercises and AGENTS.md.

    Paths such as "lessons/10_ring.ipynb" and "exercises/10_ring/10_ring.ipynb". The
    files are those of the clone that this package is in, else those installed with it.
    """
    root = Path(__file__).parents[1]
    found = [*root.glob("lessons/*.ipynb"), *root.glob("exercises/*/*.ipynb")]
    found += root.glob("exercises/AGENTS.md")
    if not found:
        try:
            listed = files("distlab") or []
        except PackageNotFoundError:
            listed = []
        found = [Path(f.locate()) for f in listed if "share/distlab/" in f.as_posix()]
    return {_place(path): path for path in sorted(found)}


def _place(path):
    """Return a file's path in a course; a wheel has all exercises in one folder."""
    if path.parent.name == "lessons":
        return f"lessons/{path.name}"
    if path.suffix == ".ipynb":
        return f"exercises/{path.stem}/{path.name}"
    return f"exercises/{path.name}"


def write_whole(path: Path, content: str | bytes, *, mode: int = 0o600) -> None:
    """Replace the file atomically: it has the whole content, or stays as it was.

    Raises: OSError, as writing in the file's folder does.
    """
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with open(handle, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        os.chmod(draft, mode)
        os.replace(draft, path)
    except BaseException:
        with suppress(FileNotFoundError):  # an interrupt came after the replacement
            os.unlink(draft)
        raise
