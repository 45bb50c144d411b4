"""Records written to folders of part files, which are there whole or not at all."""

import gzip
import os
import shutil
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain

from distlab.dataflow.rdd.chunks import chunks_of, load
from distlab.dataflow.worker import commit
from distlab.errors import InvalidArgument, NotHere, WorkdirError

__all__ = ["Files", "read_chunks", "read_part", "write_chunks"]

_GZIP = "org.apache.hadoop.io.compress.GzipCodec"
_SIZE_BYTES = 8


class Files:
    """The part of `RDD` that writes files."""

    def saveAsTextFile(
        self, path: str, compressionCodecClass: str | None = None
    ) -> None:
        """Write each partition to a file in a new folder, a record on each line."""
        if compressionCodecClass not in (None, _GZIP):
            raise NotHere(
                f"{compressionCodecClass} is left out here, other than {_GZIP}. Real "
                "Spark has it: distlab.engines.spark."
            )
        ending = ".gz" if compressionCodecClass else ""
        self._save("saveAsTextFile", path, _write_text, ending)

    def saveAsPickleFile(self, path: str, batchSize: int = 10) -> None:
        """Write each partition to a file that `Context.pickleFile` reads."""
        self._save("saveAsPickleFile", path, write_chunks, "")

    def _save(self, operation, path, write, ending):
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
            self.ctx.run(self, operation, partial(_save_part, write, path, ending))
            os.rmdir(temporary)
            with open(os.path.join(path, "_SUCCESS"), "w"):
                pass
        except BaseException:
            shutil.rmtree(path, ignore_errors=True)
            raise
        self._write_checkpoints()


def _save_part(write, folder, ending, partition, records):
    name = f"part-{partition:05}{ending}"
    temporary = os.path.join(folder, "_temporary", f"{name}.{os.getpid()}")
    write(temporary, records, bool(ending))
    commit(temporary, os.path.join(folder, name))


def _write_text(path, records, compressed):
    opened = gzip.open if compressed else open
    with opened(path, "wb") as file:
        for record in records:
            line = record if isinstance(record, bytes) else str(record).encode()
            file.write(line + b"\n")


def write_chunks(path: str, records: Iterable, _: bool = False) -> str:
    """Write records as chunks, each after its size; return the path."""
    with open(path, "wb") as file:
        for chunk, _ in chunks_of(records):
            file.write(len(chunk).to_bytes(_SIZE_BYTES, "little"))
            file.write(chunk)
    return path


def read_chunks(path: str) -> Iterator:
    """Return the records that `write_chunks` wrote."""
    return chain.from_iterable(_chunks(path))


def read_part(paths: list[str], partition: int) -> Iterator:
    """Return the records of one of several files."""
    return read_chunks(paths[partition])


def _chunks(path):
    with open(path, "rb") as file:
        while size := file.read(_SIZE_BYTES):
            yield load(file.read(int.from_bytes(size, "little")))
