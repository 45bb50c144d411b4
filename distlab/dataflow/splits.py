"""Inputs cut into splits by bytes; `line_boundaries` defines the lines of a piece."""

import os
from collections.abc import Iterable, Iterator
from itertools import chain, islice, repeat
from pathlib import Path
from typing import NamedTuple

from distlab.dataflow import line_boundaries
from distlab.errors import InvalidArgument, WorkdirError
from distlab.units import MiB, readable_bytes

__all__ = [
    "Piece",
    "blocks_of",
    "files_of",
    "split_sizes",
    "splits_of",
]

_LARGEST_SPLIT, _SMALLEST_SPLIT = 64 * MiB, MiB // 4
_STRINGS = "strings"


class Piece(NamedTuple):
    """The lines of a file that begin at an offset from `start` to before `end`.

    name: the file's name, as the mapper receives it.
    """

    name: str
    path: str
    start: int
    end: int


def files_of(inputs: object, folder: str) -> list[tuple[str, str]]:
    """Return (name, path) of every input file; strings are written to one in `folder`.

    Raises: InvalidArgument for an input of the wrong type, or a missing file.
    """
    if isinstance(inputs, str | os.PathLike):
        return _files_at(inputs)
    if not isinstance(inputs, Iterable) or isinstance(inputs, bytes):
        raise InvalidArgument(
            "inputs is the path of a file or a folder, several such Paths, or strings "
            f"with the text itself, and got {inputs!r}."
        )
    items = list(inputs) if isinstance(inputs, list | tuple) else inputs
    if isinstance(items, list) and any(isinstance(i, os.PathLike) for i in items):
        if not all(isinstance(item, os.PathLike) for item in items):
            raise InvalidArgument("inputs has both Paths and strings; choose one kind.")
        return [file for item in items for file in _files_at(item)]
    if isinstance(items, list) and items and all(map(_is_file, items)):
        raise InvalidArgument(
            f"inputs has strings, which are text, but {items[0]!r} is a file here. "
            "For the files themselves: [Path(name) for name in inputs]."
        )
    return [(_STRINGS, _write_strings(items, folder))]


def _is_file(item):
    return isinstance(item, str) and 0 < len(item) < 4096 and os.path.isfile(item)


def _files_at(place):
    """Return (name, path) of the file, or of every file in the folder, sorted."""
    path = Path(place).absolute()
    if path.is_file():
        files = [(os.fspath(place), path)]
    elif path.is_dir():
        found = sorted(p for p in path.rglob("*") if p.is_file())
        files = [(p.relative_to(path).as_posix(), p) for p in found]
    else:
        raise InvalidArgument(f"inputs: there is no file or folder {str(place)!r}.")
    for _, path in files:
        if not os.access(path, os.R_OK):
            raise InvalidArgument(f"inputs: {str(path)!r} cannot be read.")
    return [(name, str(path)) for name, path in files]


def _write_strings(strings, folder):
    path, encoded = os.path.join(folder, _STRINGS), _encoded(strings)
    Path(path).touch()
    while some := b"".join(islice(encoded, 100)):
        try:
            with open(path, "ab") as file:
                file.write(some)
        except OSError as error:
            raise WorkdirError(
                f"the inputs could not be stored in {folder}: {error}. Give run a "
                "workdir with more room."
            ) from None
    return path


def _encoded(strings):
    for number, text in enumerate(strings):
        if not isinstance(text, str):
            raise InvalidArgument(
                f"inputs has strings, except for number {number}: {text!r}."
            )
        yield (text.removesuffix("\n") + "\n").encode(errors="surrogatepass")


def split_sizes(total_bytes: int, workers: int) -> Iterator[int]:
    """Yield the size of each split, in bytes: two per worker, the large ones first.

    Few splits leave little to sort and to merge, and small ones at the end let the
    workers finish together.
    """
    large, small = (
        max(
            _SMALLEST_SPLIT,
            min(_LARGEST_SPLIT, -(-total_bytes * tenths // 10 // workers)),
        )
        for tenths in (8, 2)
    )
    return chain(repeat(large, workers), repeat(small))


def splits_of(files: list[tuple[str, str]], sizes: Iterator[int]) -> list[list[Piece]]:
    """Return splits of about these sizes, each one piece or several small files."""
    splits, room = [], 0
    for name, path in files:
        start, size = 0, os.path.getsize(path)
        while start < size:
            if room <= 0:
                splits.append([])
                room = next(sizes)
            end = min(size, start + room)
            splits[-1].append(Piece(name, path, start, end))
            room -= end - start
            start = end
    return splits


def blocks_of(piece: Piece, memory_bytes: int) -> Iterator[tuple[int, bytes]]:
    """Yield (offset, bytes) of the piece's lines, whole lines about a MiB at a time.

    Raises: OSError for a file that can no longer be read, ValueError for a line that
    takes more than an eighth of the memory.
    """
    with open(piece.path, "rb") as file:
        try:
            yield from line_boundaries.blocks_of(
                file, piece.start, piece.end, memory_bytes // 8
            )
        except ValueError:
            raise _too_long(memory_bytes) from None


def _too_long(memory_bytes):
    return ValueError(
        f"a line of more than {readable_bytes(memory_bytes // 8)}, which is too long "
        f"for memory_bytes={memory_bytes}: a line may be an eighth of that. Give more, "
        "or an input with shorter lines."
    )
