"""Choice of the exercise's notebook among the files in a student's folder."""

import re
import stat
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from nbformat.notebooknode import NotebookNode

from distlab.instructor.notebook_reader import (
    Unreadable,
    bytes_of,
    notebook_from,
    notebooks_in_zip,
)
from distlab.instructor.skeleton import grade_id_of

__all__ = ["choose", "plain_files", "plain_name"]

_COPY = r"( ?\(\d+\)| ?\[\d+\]|[ _-]+(copy|kopie|copie|final|fixed)\d*( ?\(?\d+\)?)?)+$"
_ENDINGS = (".ipynb", ".ipynb.txt", ".ipynb.json", ".json", ".zip", ".ipynb.zip")
_LARGEST_FOLDER = 2000


def plain_name(name: str) -> str:
    """Return a name without suffixes of downloads and systems: "Ring (1)" -> ring.

    Spaces, dashes and underscores become the same, and so do upper and lower case.
    """
    plain = unicodedata.normalize("NFKC", name).casefold().strip()
    return re.sub(r"[ _-]+", "_", re.sub(_COPY, "", plain)).strip("_")


def plain_files(folder: Path) -> tuple[list[Path], list[str]]:
    """Return the files in a folder and below it, and a line for each one left out.

    Links are not followed, and only regular files and folders are opened.
    """
    files, left_out, todo = [], [], [folder]
    while todo and len(files) < _LARGEST_FOLDER:
        for path in sorted(todo.pop().iterdir()):
            mode = path.lstat().st_mode
            if path.name in (".ipynb_checkpoints", "__pycache__", "__MACOSX"):
                continue
            if stat.S_ISDIR(mode):
                todo.append(path)
            elif stat.S_ISREG(mode):
                files.append(path)
            else:
                what = "a link" if stat.S_ISLNK(mode) else "not a file"
                left_out.append(f"{path.relative_to(folder)} left out: {what}")
    return files, left_out


def choose(folder: Path, name: str, known: set[str]) -> tuple[NotebookNode, list[str]]:
    """Return the notebook in `folder` that is meant as `name`, and notes on it.

    known: names of the exercise's cells, by which one is recognized under another name.

    Raises: Unreadable, naming the file, if there is none, or if several could be the
    one that is meant.
    """
    exact = folder / f"{name}.ipynb"
    files, _ = plain_files(folder)
    if not exact.is_symlink() and not exact.exists():
        return _renamed(folder, name, files, known)
    try:
        notebook, notes = notebook_from(bytes_of(exact))
    except Unreadable as error:
        raise Unreadable(f"{exact.name}: {error}")
    others = [
        path
        for path in files
        if path != exact
        and path.parent == folder
        and _could_be(path.name, name)
        and path.read_bytes() != exact.read_bytes()
    ]
    if others:
        notes.append(f"taken: {exact.name}; not looked at: {_names(others, folder)}")
    return notebook, notes


def _renamed(folder, name, files, known):
    """Return the only candidate, found by its name or else by its cells, and notes."""
    candidates = [path for path in files if _could_be(path.name, name)]
    if not candidates:
        candidates = [path for path in files if path.suffix.lower() == ".ipynb"]
    if not candidates:
        candidates = [path for path in files if path.suffix.lower() == ".zip"]
    found, unreadable = {}, []
    for path in candidates:
        where = str(path.relative_to(folder))
        try:
            for inside, data in _notebooks(path):
                notebook, notes = notebook_from(data)
                same_name = _could_be(Path(inside or path.name).name, name)
                if same_name or known & {*map(grade_id_of, notebook.cells)}:
                    shown = f"{where} ({inside})" if inside else where
                    found.setdefault(data, (shown, notebook, notes))
        except Unreadable as error:
            unreadable.append(f"{where}: {error}")
    if len(found) == 1:
        [(shown, notebook, notes)] = found.values()
        return notebook, [f"{shown} taken as {name}.ipynb", *notes]
    if found:
        both = ", ".join(shown for shown, _, _ in found.values())
        raise Unreadable(
            f"{len(found)} notebooks could be it: {both}. Leave one, as {name}.ipynb."
        )
    if unreadable:
        raise Unreadable("; ".join(unreadable))
    raise Unreadable(_nothing(folder, name, files))


def _notebooks(path) -> Iterator[tuple[str, bytes]]:
    """Yield (name in the archive, content); the name is "" for a file itself."""
    data = bytes_of(path)
    if not data.startswith(b"PK\x03\x04"):
        yield "", data
        return
    inside = notebooks_in_zip(data)
    if not inside:
        raise Unreadable("there is no notebook in the archive.")
    yield from inside.items()


def _could_be(file_name, name):
    lower = file_name.casefold()
    ending = max((e for e in _ENDINGS if lower.endswith(e)), key=len, default=None)
    if ending is None:
        return False
    return plain_name(file_name[: -len(ending)]) == plain_name(name)


def _nothing(folder, name, files):
    _, left_out = plain_files(folder)
    if not files and not left_out:
        return "the folder is empty. Ask for the notebook."
    if not files:
        return f"there is no file in the folder ({'; '.join(left_out)})."
    return (
        f"{name}.ipynb is not there, and nothing that could be it; there "
        f"is {_names(files, folder)}. Rename what is meant, or ask for it."
    )


def _names(paths, folder):
    shown = [str(path.relative_to(folder)) for path in paths[:4]]
    return ", ".join(shown) + (", ..." if len(paths) > 4 else "")
