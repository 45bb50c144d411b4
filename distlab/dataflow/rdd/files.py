"""Records written to part files: as text, all or nothing, and as a checkpoint."""

import os
import shutil
from functools import partial

from distlab.dataflow.rdd.chunks import chunks_of, read_chunks, write_chunks
from distlab.dataflow.worker import commit
from distlab.errors import InvalidArgument, WorkdirError

__all__ = ["Files"]


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
