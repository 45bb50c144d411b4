"""Records written to part files: as text, all or nothing, and as a checkpoint.

Every file has pieces of its own; an empty one has none. `line_boundaries` defines a
line, and the piece that it belongs to, for MapReduce too.
"""

import glob
import gzip
import os
import shutil
from collections.abc import Iterator
from functools import partial
from itertools import chain, repeat, starmap
from pathlib import Path

from distlab.dataflow.line_boundaries import blocks_of, lines_in
from distlab.dataflow.rdd.record_batches import chunks_of, read_chunks, write_chunks
from distlab.dataflow.splits import Piece, splits_of
from distlab.dataflow.worker import commit
from distlab.errors import InvalidArgument, WorkdirError
from distlab.units import MiB

__all__ = ["Files", "files_at", "lines_of", "pieces_of"]


class Files:
    """The part of `RDD` that writes files."""

    def saveAsTextFile(self, path: str) -> None:
        """Write each partition to a file in a new folder, a record on each line."""
        path = os.path.abspath(os.fspath(path).removeprefix("file:"))
        if os.path.lexists(path):
            raise InvalidArgument(
                f"{path} is there already, and nothing is overwritten. Remove it, or "
                "give another path."
            )
        temporary = os.path.join(path, "_temporary")
        try:
            os.makedirs(temporary)
        except OSError as error:
            raise WorkdirError(f"{path} cannot be written: {error}.") from None
        try:
            self.ctx.run(self, "saveAsTextFile", partial(_save_part, path))
            shutil.rmtree(temporary)  # with what a killed attempt has left there
            with open(os.path.join(path, "_SUCCESS"), "w"):
                pass
        except BaseException:
            shutil.rmtree(path, ignore_errors=True)
            raise
        self._write_checkpoints()

    def checkpoint(self) -> None:
        """Mark it for a checkpoint, which the next action on it writes.

        From then on it is read from there, and its lineage is not needed.
        """
        if self.ctx.checkpoints is None:
            raise InvalidArgument(
                "checkpoint needs a folder first: sc.setCheckpointDir('checkpoints')"
            )
        self.checkpointing = True

    def isCheckpointed(self) -> bool:
        """Return True if its lineage has been cut by a checkpoint."""
        return self.cut_off

    def _write_checkpoints(self):
        """Write the requested checkpoints, now that an action has ended."""
        for each in _asked(self):
            folder = os.path.join(self.ctx.checkpoints, f"rdd-{each.number}")
            os.makedirs(folder, exist_ok=True)
            paths = self.ctx.run(each, "checkpoint", partial(_write, folder))
            each.cut_lineage(partial(_read, paths))


def _save_part(folder, partition, records):
    name = f"part-{partition:05}"
    temporary = os.path.join(folder, "_temporary", f"{name}.{os.getpid()}")
    with open(temporary, "wb") as file:
        for record in records:
            line = record if isinstance(record, bytes) else str(record).encode()
            file.write(line + b"\n")
    commit(temporary, os.path.join(folder, name))


def _asked(node):
    """Return the ancestors that are to be checkpoints and are not yet, oldest first."""
    found, seen, waiting = [], set(), [node]
    while waiting:
        each = waiting.pop()
        if each.number not in seen:
            seen.add(each.number)
            waiting += [dependency.parent for dependency in each.dependencies]
            if each.checkpointing and not each.cut_off:
                found.append(each)
    return sorted(found, key=lambda each: each.number)


def _write(folder, partition, records):
    path = os.path.join(folder, f"part-{partition:05}")
    write_chunks(path, chunks_of(records))
    return path


def _read(paths, partition):
    return read_chunks(paths[partition])


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
