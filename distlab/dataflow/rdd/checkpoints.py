"""Checkpoints: an RDD written down, so that what it was made from can be forgotten."""

import os
from functools import partial

from distlab.dataflow.rdd.files import read_part, write_chunks
from distlab.dataflow.rdd.levels import StorageLevel
from distlab.errors import InvalidArgument

__all__ = ["Checkpoints"]


class Checkpoints:
    """The part of `RDD` that cuts lineages."""

    def checkpoint(self) -> None:
        """Have it written to the checkpoint folder by the next action on it.

        From then on it is read from there, and what it was made from is not needed.
        """
        if self.ctx.getCheckpointDir() is None:
            raise InvalidArgument(
                "checkpoint needs a folder first: sc.setCheckpointDir('checkpoints')"
            )
        self.checkpointing = self.checkpointing or "asked"

    def localCheckpoint(self) -> None:
        """Have it kept by the workers, and what it was made from forgotten.

        It is lost for good with a worker that keeps a part of it.
        """
        if not self.kept:
            self.persist(StorageLevel.MEMORY_AND_DISK)
        self.checkpointing = self.checkpointing or "local"

    def isCheckpointed(self) -> bool:
        """Return whether its lineage has been cut by a checkpoint."""
        return self.cut_off

    def isLocallyCheckpointed(self) -> bool:
        """Return whether it is, or will be, checkpointed on the workers only."""
        return self.checkpointing == "local"

    def getCheckpointFile(self) -> str | None:
        """Return the folder that its checkpoint is in, if there is one."""
        written = self.isCheckpointed() and not self.isLocallyCheckpointed()
        return os.fspath(self.checkpointing) if written else None

    def _write_checkpoints(self):
        """Write what was asked to be a checkpoint, now that an action has ended."""
        for each in _asked(self):
            folder = each.checkpointing
            if folder == "local":
                each.ctx.run(each, "localCheckpoint", _nothing)
                each._cut(partial(_gone, each.number), "local")
                continue
            folder = os.path.join(each.ctx.getCheckpointDir(), f"rdd-{each.number}")
            os.makedirs(folder, exist_ok=True)
            paths = each.ctx.run(each, "checkpoint", partial(_write, folder))
            each._cut(partial(read_part, paths), folder)

    def _cut(self, compute, how):
        """Forget what it was made from."""
        self.kind, self.compute, self.elementwise = "source", compute, False
        self.dependencies, self.checkpointing, self._sealed = (), how, None
        self.cut_off = True


def _asked(node):
    """Return the ancestors that are to be checkpoints and are not yet, oldest first."""
    found, seen, waiting = [], set(), [node]
    while waiting:
        each = waiting.pop()
        if each.number not in seen:
            seen.add(each.number)
            waiting += [dependency.parent for dependency in each.dependencies]
            if each.checkpointing is not None and not each.cut_off:
                found.append(each)
    return sorted(found, key=lambda each: each.number)


def _gone(number, partition):
    raise RuntimeError(
        f"partition {partition} of RDD {number} was lost with its worker. There was "
        "only a local checkpoint, so what it was made from is not known any more."
    )


def _nothing(partition, records):
    for _ in records:
        pass


def _write(folder, partition, records):
    return write_chunks(os.path.join(folder, f"part-{partition:05}"), records)
