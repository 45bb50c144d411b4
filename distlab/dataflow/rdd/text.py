"""Text files cut into partitions, and read line by line.

Where the cuts are is what Hadoop, and so Spark, does: a file is cut into pieces of the
size that gives the number of partitions asked for, or of 32 MiB if that is less; a last
piece may be a tenth larger; every file has pieces of its own, an empty one has none. A
line that begins where a piece ends still belongs to that piece. What a line is, is said
in `lines`, which MapReduce goes by, too.
"""

import glob
import gzip
import math
import os
import re
from collections.abc import Iterator
from itertools import chain, starmap
from typing import NamedTuple

from distlab.dataflow.lines import blocks_of, lines_in
from distlab.errors import InvalidArgument
from distlab.units import MiB

__all__ = ["Piece", "files_at", "lines_of", "packs_of", "pieces_of", "whole_texts"]

_BLOCK_BYTES = 32 * MiB
_SLOP = 1.1


class Piece(NamedTuple):
    """The bytes of a file from `start` to before `end`."""

    path: str
    start: int
    end: int


def files_at(name: str | os.PathLike) -> list[str]:
    """Return the files of a path, folder or pattern, or several with commas between.

    Those whose names begin with _ or . are not data.

    Raises: InvalidArgument if there are none.
    """
    found = []
    for path in _alternatives(os.fspath(name)):
        path = os.path.abspath(
            path.strip().removeprefix("file://").removeprefix("file:")
        )
        paths = [path] if os.path.lexists(path) else sorted(glob.glob(path))
        if not paths:
            raise InvalidArgument(f"there is no file or folder {path!r}.")
        for each in paths:
            found += _files_in(each) if os.path.isdir(each) else [each]
    for path in found:
        if not os.access(path, os.R_OK):
            raise InvalidArgument(f"{path!r} cannot be read.")
    return found


def _alternatives(name):
    """Return what is between the commas; a{b,c} stands for ab and ac."""
    braces = re.search(r"\{([^{}]*)\}", name)
    if braces is None:
        return name.split(",")
    head = name[: braces.start()].rpartition(",")
    tail = name[braces.end() :].partition(",")
    middle = [
        each
        for choice in braces[1].split(",")
        for each in _alternatives(head[2] + choice + tail[0])
    ]
    before = head[0].split(",") if head[1] else []
    return [*before, *middle, *(_alternatives(tail[2]) if tail[1] else [])]


def _files_in(folder):
    entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    return [e.path for e in entries if e.is_file() and e.name[0] not in "_."]


def pieces_of(paths: list[str], partitions: int) -> list[Piece]:
    """Return the pieces, at least `partitions` if there are bytes enough."""
    sizes = [os.path.getsize(path) for path in paths]
    wanted = max(1, min(sum(sizes) // max(1, partitions), _BLOCK_BYTES))
    pieces = []
    for path, size in zip(paths, sizes, strict=True):
        start = 0
        while not path.endswith(".gz") and (size - start) / wanted > _SLOP:
            pieces.append(Piece(path, start, start + wanted))
            start += wanted
        if start < size:
            pieces.append(Piece(path, start, size))
    return pieces


def lines_of(pieces: list[Piece], as_text: bool, partition: int) -> Iterator:
    """Return the lines of one of the pieces, without their ends."""
    piece = pieces[partition]
    if piece.path.endswith(".gz"):
        with gzip.open(piece.path) as file:
            lines = lines_in(0, file.read())
    else:
        lines = chain.from_iterable(starmap(lines_in, _blocks(piece)))
    return iter(lines) if as_text else map(str.encode, lines)


def _blocks(piece):
    start = piece.start and piece.start + 1
    with open(piece.path, "rb") as file:
        yield from blocks_of(file, start, piece.end + 1)


def packs_of(paths: list[str], partitions: int) -> list[list[str]]:
    """Return whole files, put together into about as many packs."""
    sizes = [os.path.getsize(path) for path in paths]
    most = math.ceil(sum(sizes) / max(1, partitions))
    packs, held = [], 0
    for path, size in zip(paths, sizes, strict=True):
        if not packs or held >= most:
            packs.append([])
            held = 0
        packs[-1].append(path)
        held += size
    return packs


def whole_texts(packs: list[list[str]], as_text: bool, partition: int) -> Iterator:
    """Yield (path, text) of each file of a pack."""
    for path in packs[partition]:
        with open(path, "rb") as file:
            data = file.read()
        yield f"file:{path}", data.decode(errors="replace") if as_text else data
