"""Locations of data: the map outputs and kept partitions of live workers."""

from collections import Counter, defaultdict

from distlab.dataflow.rdd.dependencies import DatasetNode, Narrow, Wide
from distlab.dataflow.rdd.shuffle import MapOutput

__all__ = ["Locations"]


class Locations:
    """The notebook's record of its workers' disks and caches.

    outputs: shuffle -> map task -> (worker, MapOutput). kept: (data set, partition) ->
    the workers that have it.
    Invariant: it has no entry of a worker that is lost.
    """

    def __init__(self):
        self.outputs = defaultdict(dict)
        self.kept = defaultdict(set)

    def lost(self, worker: int) -> None:
        """Remove the entries of a lost worker, its memory and its disk."""
        for outputs in self.outputs.values():
            for task in [t for t, (owner, _) in outputs.items() if owner == worker]:
                del outputs[task]
        for workers in self.kept.values():
            workers.discard(worker)

    def changed(self, worker: int, gained: list, evicted: list) -> None:
        """Record the partitions added to a worker's cache, and those evicted."""
        for key in gained:
            self.kept[key].add(worker)
        for key in evicted:
            self.kept[key].discard(worker)

    def forget(self, number: int) -> None:
        """Record that a data set is no longer kept."""
        for key in [key for key in self.kept if key[0] == number]:
            del self.kept[key]

    def file_lost(self, path: str) -> bool:
        """Record that an output's file is missing; return True if it was recorded."""
        for outputs in self.outputs.values():
            for task, (_, output) in outputs.items():
                if output.path == path:
                    del outputs[task]
                    return True
        return False

    def is_kept(self, node: DatasetNode, partition: int) -> bool:
        """Return True if a live worker keeps this partition."""
        return bool(node.kept and self.kept.get((node.number, partition)))

    def missing(self, wide: Wide) -> list[int]:
        """Return the map tasks of a shuffle whose output no live worker has."""
        have = self.outputs[wide.number]
        return [t for t in range(wide.parent.partitions) if t not in have]

    def holders(self, node: DatasetNode, partition: int) -> set[int]:
        """Return the workers preferred for a task, because of the partitions they keep.

        These are the workers that keep all kept partitions that the task needs, or else
        the one that keeps most of them; the empty set if none is kept.
        """
        kept = []
        for each, number in self._walk(node, partition, self.is_kept):
            if self.is_kept(each, number):
                kept.append(self.kept[each.number, number])
        everything = set.intersection(*kept) if kept else set()
        if everything or not kept:
            return everything
        votes = Counter(worker for workers in kept for worker in workers)
        return {min(votes, key=lambda worker: (-votes[worker], worker))}

    def pieces(
        self, node: DatasetNode, partition: int, worker: int | None
    ) -> list[tuple[Wide, int]]:
        """Return each (shuffle, partition) that a task needs if this worker runs it.

        The ancestors of a partition that the worker keeps are not needed.
        """

        def is_here(each, number):
            return each.kept and worker in self.kept.get((each.number, number), ())

        return [
            (dependency, number)
            for each, number in self._walk(node, partition, is_here)
            if not is_here(each, number)
            for dependency in each.dependencies
            if isinstance(dependency, Wide)
        ]

    def _walk(self, node, partition, ends):
        """Yield (data set, partition) of narrow ancestors, up to those where `ends`."""
        seen, waiting = set(), [(node, partition)]
        while waiting:
            node, partition = waiting.pop()
            if (node.number, partition) not in seen:
                seen.add((node.number, partition))
                yield node, partition
                if not ends(node, partition):
                    for each in node.dependencies:
                        if isinstance(each, Narrow):
                            needed = each.needs(partition)
                            waiting += [(each.parent, number) for number in needed]

    def segments(self, wide: Wide, partition: int) -> list[tuple[str, list]]:
        """Return (path, chunks) of each piece of a partition, by map task."""
        have = self.outputs[wide.number]
        outputs: list[MapOutput] = [have[t][1] for t in sorted(have)]
        return [(output.path, output.pieces[partition]) for output in outputs]
