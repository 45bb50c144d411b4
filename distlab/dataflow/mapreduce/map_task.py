"""A map task: the lines of one split, through the mapper, into sorted runs on disk."""

import gc
import os
import reprlib
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from itertools import chain, islice
from operator import length_hint
from typing import NamedTuple

from distlab.dataflow.line_boundaries import line_number, lines_in, offsets_in
from distlab.dataflow.mapreduce.map_output_buffer import MapOutputTable
from distlab.dataflow.mapreduce.sorted_runs import Run
from distlab.dataflow.record_notes import noting
from distlab.dataflow.splits import Piece, blocks_of
from distlab.dataflow.user_functions import (
    Functions,
    check_mapped,
    described_pairs,
    noted_keys,
)
from distlab.dataflow.worker import AtRecord

__all__ = ["Mapped", "map_task"]


class Mapped(NamedTuple):
    """The result of a map task: a run for each reducer, and its counts."""

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
    note: str | None = None,
) -> Mapped:
    """Map a split's lines into a file at `path`.

    skip: (path, offset) of records to leave out. note: path of a note to keep.

    Raises: AtRecord if the mapper fails on a line, or an input cannot be read.
    """
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with noting(note) as say, ExitStack() as ending:
        # Frozen below: else the collector traverses the growing table again and again.
        ending.callback(gc.unfreeze)
        if say is not None:
            functions = noted_keys(functions, say)
        table = MapOutputTable(functions, reducers, memory_bytes, path)
        records = _Records(functions, split, skip, memory_bytes, table.counts)
        records.say = say
        pairs = chain.from_iterable(chain.from_iterable(records.mapped()))
        while not records.ended:
            try:
                table.take(pairs)
            except Exception as error:
                raise records.failed(error) from records.reason(error)
            table.look()
            records.note()  # a combiner's key has been noted since
            gc.freeze()
        runs = table.finish()
    return Mapped(runs, dict(table.counts))


class _Records:
    """The lines of a split on their way through the mapper.

    The line at the mapper is looked up only after the mapper has failed, so the path
    of all other lines stays short.
    """

    def __init__(self, functions, split, skip, memory_bytes, counts):
        self.ended = False
        self._said = ""
        self.say = None  # writes the note that names the next record to be mapped
        self._functions = functions
        self._split = split
        self._skip = skip
        self._memory_bytes = memory_bytes
        self._counts = counts
        self._piece = self._mapper = None
        self._offset, self._block = 0, b""
        self._lines, self._left = [], iter(())

    def mapped(self) -> Iterator[Iterator]:
        """Yield iterators over what the mapper returns for each line."""
        for piece in self._split:
            self._piece, self._mapper = piece, self._functions.mapper
            if self._functions.named:
                self._mapper = partial(self._mapper, piece.name)
            for offset, block in self._blocks():
                self._offset, self._block = offset, block
                self._lines = self._kept(lines_in(offset, block))
                self._counts["input_bytes"] += len(block)
                self._counts["input_records"] += len(self._lines)
                self._left = iter(self._lines)
                mapper = self._mapper if self.say is None else self._noting()
                for line in islice(self._left, 1):
                    yield [check_mapped(mapper(line))]
                yield map(mapper, self._left)
        self.ended = True

    def _blocks(self):
        try:
            yield from blocks_of(self._piece, self._memory_bytes)
        except (OSError, ValueError) as error:
            where = f"It was reading the input {self._piece.name}."
            raise AtRecord(where) from error

    def _kept(self, lines):
        """Return the lines without the records to skip."""
        if not any(path == self._piece.path for path, _ in self._skip):
            return lines
        kept = [
            line
            for line, place in zip(lines, self._places(), strict=True)
            if place not in self._skip
        ]
        self._counts["skipped_records"] += len(lines) - len(kept)
        return kept

    def _places(self):
        """Return (path, offset) of each line of the block."""
        offsets = offsets_in(self._offset, self._block)
        return [(self._piece.path, offset) for offset in offsets]

    def _noting(self):
        """Return the mapper, wrapped to note each line of the block first."""
        first = line_number(self._piece.path, self._offset)
        places = enumerate(self._places(), first)
        numbers = iter([n for n, place in places if place not in self._skip])

        def mapper(line):
            shown = reprlib.repr(line)
            where = f"{self._piece.name}, line {next(numbers)}"
            self._said = f"The mapper was at {where}: {shown}"
            self.note()
            return self._mapper(line)

        return mapper

    def note(self) -> None:
        """Write the note that names the record at the mapper again."""
        if self.say is not None:
            self.say(self._said)

    def reason(self, error: Exception) -> Exception:
        """Return the exception to report as the cause of a failure to take pairs."""
        if isinstance(error, AtRecord):
            return error.__cause__
        return described_pairs(self._mapper, self._line(), error)

    def failed(self, error: Exception) -> AtRecord:
        """Return the exception that names the record that was at the mapper."""
        if isinstance(error, AtRecord):
            return error
        kept = [place for place in self._places() if place not in self._skip]
        path, offset = kept[self._number()]
        where = f"{self._piece.name}, line {line_number(path, offset)}"
        line = reprlib.repr(self._line())
        return AtRecord(f"The mapper was at {where}: {line}", (path, offset))

    def _number(self):
        return len(self._lines) - length_hint(self._left) - 1

    def _line(self):
        return self._lines[self._number()]
