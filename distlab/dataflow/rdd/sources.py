"""Where data comes from: RDDs that have no parent."""

import os
import weakref
from collections.abc import Iterable, Sequence
from functools import partial

from distlab.dataflow.rdd import text
from distlab.dataflow.rdd.chunks import dump, read_segments
from distlab.dataflow.rdd.files import read_part
from distlab.dataflow.rdd.rdd import RDD
from distlab.errors import CannotTravel, DistlabError, InvalidArgument

__all__ = ["Sources"]

_BATCH = 1024


class Sources:
    """The part of a Context that makes RDDs."""

    def _source(self, operation, partitions, compute):
        return RDD(self, operation, partitions, "source", compute)

    def parallelize(self, c: Iterable, numSlices: int | None = None) -> RDD:
        """Return an RDD of the items of `c`, cut into slices."""
        slices = _slices(numSlices, self.defaultParallelism)
        if isinstance(c, range):
            compute = partial(_part_of_range, c, slices)
            return self._source("parallelize", slices, compute)
        items = c if hasattr(c, "__len__") else list(c)
        batch = max(1, min(len(items) // slices, _BATCH))
        path, segments = self._store(items, batch, slices)
        made = self._source("parallelize", slices, partial(_read_slice, path, segments))
        made.batch = batch
        self._remove_with(made, path)
        return made

    def _store(self, items, batch, slices):
        """Write the slices of what is parallelized to a file."""
        items = items if isinstance(items, list) else list(items)
        batches = -(-len(items) // batch)
        segments, parts, end = [], [], 0
        for number in range(slices):
            first, last = (batches * n // slices * batch for n in (number, number + 1))
            try:
                parts.append(dump(items[first:last]))
            except DistlabError:
                raise
            except Exception as error:
                raise CannotTravel(
                    f"an item given to parallelize cannot travel to a worker: {error}"
                ) from None
            segments.append((end, len(parts[-1])))
            end += len(parts[-1])
        return self.cluster.store("data", b"".join(parts)), segments

    def _remove_with(self, rdd, path):
        """Have a file removed when nobody refers to an RDD any more."""
        weakref.finalize(rdd, self.cluster.garbage.append, path).atexit = False

    def range(
        self,
        start: int,
        end: int | None = None,
        step: int = 1,
        numSlices: int | None = None,
    ) -> RDD:
        """Return an RDD of the numbers of range(start, end, step)."""
        start, end = (0, start) if end is None else (start, end)
        return self.parallelize(range(start, end, step), numSlices)

    def textFile(
        self,
        name: str | os.PathLike,
        minPartitions: int | None = None,
        use_unicode: bool = True,
    ) -> RDD:
        """Return the lines of a file, a folder or a pattern such as "logs/*.txt"."""
        pieces = text.pieces_of(text.files_at(name), self._least(minPartitions))
        compute = partial(text.lines_of, pieces, use_unicode)
        made = self._source("textFile", len(pieces), compute)
        made.batch = 1
        return made

    def wholeTextFiles(
        self,
        path: str | os.PathLike,
        minPartitions: int | None = None,
        use_unicode: bool = True,
    ) -> RDD:
        """Return (path, text) of each file of a folder."""
        packs = text.packs_of(text.files_at(path), self._least(minPartitions))
        compute = partial(text.whole_texts, packs, use_unicode)
        return self._source("wholeTextFiles", len(packs), compute)

    def pickleFile(self, name: str, minPartitions: int | None = None) -> RDD:
        """Return what `RDD.saveAsPickleFile` wrote, a partition for each file."""
        paths = text.files_at(name)
        return self._source("pickleFile", len(paths), partial(read_part, paths))

    def _least(self, partitions):
        return partitions or self.defaultMinPartitions

    @property
    def one(self) -> RDD:
        """An RDD with one empty partition, to call a function once on a worker."""
        return self._source("one", 1, _nothing)

    def emptyRDD(self) -> RDD:
        """Return an RDD without partitions."""
        return self._source("emptyRDD", 0, _nothing)

    def union(self, rdds: Sequence[RDD]) -> RDD:
        """Return all records of several RDDs, partition after partition."""
        if not rdds:
            raise InvalidArgument("union takes at least one RDD, and got none.")
        first, *others = rdds
        return first._union(others)


def _slices(given, default):
    slices = default if given is None else int(given)
    if slices < 1:
        raise InvalidArgument(
            f"numSlices is a whole number of at least 1, and got {given!r}."
        )
    return slices


def _part_of_range(numbers, slices, partition):
    size = len(numbers)
    first, last = (int(n * size / slices) for n in (partition, partition + 1))
    return numbers[first:last]


def _read_slice(path, segments, partition):
    (items,) = read_segments(path, [segments[partition]])
    return items


def _nothing(partition):
    return ()
