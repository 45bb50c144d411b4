"""A map task: the lines of one split, through the mapper, into sorted runs on disk."""

import gc
import os
import reprlib
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from distlab.dataflow.functions import Functions, described_pairs
from distlab.dataflow.runs import Run
from distlab.dataflow.splits import Piece, blocks_of, line_number, lines_in
from distlab.dataflow.table import Table
from distlab.dataflow.worker import AtRecord

__all__ = ["Mapped", "map_task"]


class Mapped(NamedTuple):
    """What a map task leaves: a run for each reducer, and its counts."""

    runs: list[Run]
    counts: dict


def map_task(
    functions: Functions,
    path: str,
    split: list[Piece],
    skip: set,
    *,
    reducers: int,
    memory_bytes: int,
) -> Mapped:
    """Map a split's lines into a file at `path`.

    skip: (path, offset) of records to leave out.

    Raises: AtRecord if the mapper fails on a line.
    """
    os.makedirs(os.path.dirname(path), exist_ok=True)
    table = Table(functions, reducers, memory_bytes, path)
    with _no_collector():
        for piece in split:
            mapper = functions.mapper
            if functions.named:
                mapper = partial(mapper, piece.name)
            for offset, block in blocks_of(piece):
                lines = _lines(piece, offset, block, skip, table.counts)
                table.counts["input_bytes"] += len(block)
                _map(mapper, lines, table, Place(piece, offset, block, skip))
        runs = table.finish()
    return Mapped(runs, dict(table.counts))


@contextmanager
def _no_collector():
    """Keep the collector of cycles from reading a growing table over and over."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _map(mapper, lines, table, place):
    """Put the pairs of all lines into the table."""
    table.counts["input_records"] += len(lines)
    values, done = table.values, 0
    for batch in table.batches(lines):
        line = None
        try:
            for number, line in enumerate(batch):  # noqa: B007
                for key, value in mapper(line):
                    values[key].append(value)
        except Exception as error:
            raise place.of(done + number, line) from described_pairs(
                mapper, line, error
            )
        done += len(batch)


def _lines(piece, offset, block, skip, counts):
    """Return the lines of a block, without the records to skip."""
    lines = lines_in(block)
    if any(path == piece.path for path, _ in skip):
        places = _offsets(offset, block)
        kept = [
            line
            for line, place in zip(lines, places, strict=True)
            if (piece.path, place) not in skip
        ]
        counts["skipped_records"] += len(lines) - len(kept)
        return kept
    return lines


class Place(NamedTuple):
    """Where a block of lines is from, to say which record a mapper failed on."""

    piece: Piece
    offset: int
    block: bytes
    skip: set

    def of(self, number: int, line: str) -> AtRecord:
        """Return the exception that names the n-th of the lines that were mapped."""
        path = self.piece.path
        kept = [
            at
            for at in _offsets(self.offset, self.block)
            if (path, at) not in self.skip
        ]
        at = kept[number]
        where = f"{self.piece.name}, line {line_number(path, at)}"
        return AtRecord(f"The mapper was at {where}: {reprlib.repr(line)}", (path, at))


def _offsets(offset, block):
    """Return the offset in the file of each line of a block."""
    places = []
    for line in block.split(b"\n"):
        places.append(offset)
        offset += len(line) + 1
    return places[:-1] if block.endswith(b"\n") else places
