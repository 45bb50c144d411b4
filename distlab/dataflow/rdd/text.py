"""Text files cut into partitions, and read line by line.

Every file has pieces of its own; an empty one has none. `lines` defines a line, and the
piece that it belongs to, for MapReduce too.
"""

import glob
import gzip
import os
from collections.abc import Iterator
from itertools import chain, repeat, starmap
from pathlib import Path

from distlab.dataflow.lines import blocks_of, lines_in
from distlab.dataflow.splits import Piece, splits_of
from distlab.errors import InvalidArgument
from distlab.units import MiB

__all__ = ["files_at", "lines_of", "pieces_of"]

_BLOCK_BYTES = 32 * MiB


def files_at(name: str | os.PathLike) -> list[str]:
    """Return the files of a path, folder or pattern, or several with commas between.

    Those in a folder whose names begin with _ or . are not data.

    Raises: InvalidArgument if there are none.
    """
    found = []
    for path in os.fspath(name).split(","):
        path = os.path.abspath(path.removeprefix("file://"))
        paths = [path] if os.path.lexists(path) else sorted(glob.glob(path))
        if not paths:
            raise InvalidArgument(f"there is no file or folder {path!r}.")
        for each in map(Path, paths):
            inside = sorted(each.iterdir()) if each.is_dir() else []
            data = [p for p in inside if p.is_file() and p.name[0] not in "_."]
            found += map(str, data if each.is_dir() else [each])
    for path in found:
        if not os.access(path, os.R_OK):
            raise InvalidArgument(f"{path!r} cannot be read.")
    return found


def pieces_of(paths: list[str], partitions: int) -> list[Piece]:
    """Return about `partitions` pieces of equal size, at least one of each file."""
    sizes = [os.path.getsize(path) for path in paths]
    wanted = max(1, min(sum(sizes) / partitions, _BLOCK_BYTES))
    pieces = []
    for path, size in zip(paths, sizes, strict=True):
        count = 1 if path.endswith(".gz") else max(1, round(size / wanted))
        splits = splits_of([(path, path)], repeat(-(-size // count)))
        pieces += chain.from_iterable(splits)
    return pieces


def lines_of(pieces: list[Piece], partition: int) -> Iterator[str]:
    """Return the lines of one of the pieces, without their ends."""
    piece = pieces[partition]
    if piece.path.endswith(".gz"):
        with gzip.open(piece.path) as file:
            return iter(lines_in(0, file.read()))
    return chain.from_iterable(starmap(lines_in, _blocks(piece)))


def _blocks(piece):
    with open(piece.path, "rb") as file:
        yield from blocks_of(file, piece.start, piece.end)
