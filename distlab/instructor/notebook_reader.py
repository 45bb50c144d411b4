"""A reader of submitted notebooks, of any version, that says what is wrong with one."""

import io
import json
import os
import stat
import zipfile
from pathlib import Path

import nbformat
from nbformat.notebooknode import NotebookNode, from_dict

from distlab.units import MB, readable_bytes

__all__ = ["Unreadable", "bytes_of", "notebook_from", "notebooks_in_zip"]

LARGEST = 50 * MB
_KINDS = (
    (b"%PDF", "a PDF"),
    (b"PK\x03\x04", "an archive (zip)"),
    (b"\x1f\x8b", "an archive (gzip)"),
    (b"7z\xbc\xaf", "an archive (7z)"),
    (b"Rar!", "an archive (rar)"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
)


class Unreadable(Exception):
    """A file that is no notebook; the message has its kind, and advice."""


def bytes_of(path: Path) -> bytes:
    """Return the bytes of a plain file; links, pipes and the like are not opened.

    Raises: Unreadable.
    """
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode):
        raise Unreadable(
            f"it is a link to {os.readlink(path)}, and links are not followed. "
            "Put the file itself there."
        )
    if not stat.S_ISREG(found.st_mode):
        raise Unreadable("it is not a file. Ask for the notebook itself.")
    _refuse_huge(found.st_size)
    try:
        return path.read_bytes()
    except OSError as error:
        raise Unreadable(f"it cannot be read ({error.strerror}).")


def notebooks_in_zip(data: bytes) -> dict[str, bytes]:
    """Return the notebooks in an archive, by their names in it.

    Raises: Unreadable.
    """
    found = {}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for one in archive.infolist():
                path = Path(one.filename)
                hidden = any(part.startswith((".", "__")) for part in path.parts)
                if path.suffix.lower() == ".ipynb" and not hidden:
                    _refuse_huge(one.file_size)
                    with archive.open(one) as file:
                        found[one.filename] = file.read(LARGEST + 1)
                    _refuse_huge(len(found[one.filename]))
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError, OSError):
        raise Unreadable("it is an archive that cannot be opened. Ask for it again.")
    return found


def notebook_from(data: bytes) -> tuple[NotebookNode, list[str]]:
    """Return the notebook, in nbformat 4, and notes on its oddities.

    Raises: Unreadable.
    """
    notes = []
    if not data.strip(b" \t\r\n\0"):
        raise Unreadable(
            "the file is empty. The upload may have failed; ask for it again."
            if not data
            else "the file holds nothing but blanks. Ask for it again."
        )
    loaded = _parse(data)
    if not isinstance(loaded, dict) or not (
        isinstance(loaded.get("cells"), list)
        or isinstance(loaded.get("worksheets"), list)
    ):
        raise Unreadable("it is JSON, but not a notebook: it has no cells.")
    return _upgraded(loaded, notes), notes


def _refuse_huge(size):
    if size > LARGEST:
        raise Unreadable(
            f"it has {readable_bytes(size)}, and a notebook may have "
            f"{readable_bytes(LARGEST)}. Ask for it without its outputs."
        )


def _parse(data):
    for magic, kind in _KINDS:
        if data.startswith(magic):
            raise Unreadable(f"it is {kind}, not a notebook. Ask for the .ipynb.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Unreadable(
            "it is not UTF-8 text, as every notebook is. Ask for the .ipynb, saved by "
            "Jupyter."
        )
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise Unreadable(_not_json(text, data, error))
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"it is no JSON that can be read: {str(error)[:200]}")


def _not_json(text, data, error):
    start = text.lstrip()
    if start[:1] == "<":
        return "it is a web page, not a notebook. Ask for the .ipynb file itself."
    if start[:1] != "{":
        return "it is not a notebook, but some other text. Ask for the .ipynb."
    if error.pos >= len(text.rstrip()) - 1 or error.msg.startswith("Unterminated"):
        return (
            f"it breaks off after {readable_bytes(len(data))}: the upload was cut "
            "short, or the disk was full. Ask for it again."
        )
    return (
        f"it is damaged: {error.msg} in line {error.lineno}. Ask for it again, saved "
        "by Jupyter."
    )


def _upgraded(loaded, notes):
    major = loaded.get("nbformat", 4 if "cells" in loaded else 3)
    if not isinstance(major, int) or major > nbformat.current_nbformat:
        raise Unreadable(
            f"its format is nbformat {major!r}, and {nbformat.current_nbformat} is the "
            "newest that is known here. Ask for it saved by an older Jupyter, or "
            "install a newer nbformat."
        )
    if major < 4:
        notes.append(f"an old notebook (nbformat {major}), upgraded")
        try:
            return nbformat.convert(
                nbformat.versions[major].to_notebook_json(loaded)
                if hasattr(nbformat.versions[major], "to_notebook_json")
                else from_dict(loaded),
                4,
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise Unreadable(f"its old format cannot be upgraded: {error!r}")
    loaded["nbformat"] = 4
    return from_dict(loaded)
