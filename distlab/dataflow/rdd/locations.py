"""What is where: the map outputs and kept partitions that live workers have."""

from collections import Counter, defaultdict

from distlab.dataflow.rdd.graph import Narrow, Node, Wide
from distlab.dataflow.rdd.shuffle import MapOutput

__all__ = ["Locations"]


class Locations:
    """The notebook's knowledge of its workers' disks and caches.

    outputs: shuffle -> map task -> (worker, MapOutput). kept: (data set, partition) ->
    the workers that have it.
    Invariant: nothing of a worker that is lost is in it.
    """

    def __init__(self):
        self.outputs = defaultdict(dict)
        self.kept = defaultdict(set)

    def lost(self, worker: int) -> None:
        """Take in that a worker is gone, with its memory and its disk."""
        for outputs in self.outputs.values():
            for task in [t for t, (owner, _) in outputs.items() if owner == worker]:
                del outputs[task]
        for workers in self.kept.values():
            workers.discard(worker)

    def changed(self, worker: int, gained: list, evicted: list) -> None:
        """Take in what came into a worker's cache, and what went."""
        for key in gained:
            self.kept[key].add(worker)
        for key in evicted:
            self.kept[key].discard(worker)

    def forget(self, number: int) -> None:
        """Take in that a data set is not kept any more."""
        for key in [key for key in self.kept if key[0] == number]:
            del self.kept[key]

    def file_lost(self, path: str) -> bool:
        """Take in that an output's file is gone; return whether it was known."""
        for outputs in self.outputs.values():
            for task, (_, output) in outputs.items():
                if output.path == path:
                    del outputs[task]
                    return True
        return False

    def is_kept(self, node: Node, partition: int) -> bool:
        """Return whether a live worker has this partition."""
        return bool(node.kept and self.kept.get((node.number, partition)))

    def missing(self, wide: Wide) -> list[int]:
        """Return the map tasks of a shuffle whose output nobody has."""
        have = self.outputs[wide.number]
        return [t for t in range(wide.parent.partitions) if t not in have]

    def keepers(self, node: Node, partition: int) -> set[int]:
        """Return the workers that can best do a task, because of what they keep.

        It is those that keep all that anybody keeps of what the task needs, or else one
        that keeps most of it; nobody if nothing is kept.
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
        self, node: Node, partition: int, worker: int | None
    ) -> list[tuple[Wide, int]]:
        """Return which (shuffle, partition) a task needs if this worker does it.

        What is behind a partition that the worker keeps is not needed.
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
        """Yield (data set, partition) of what a task is about, up to where it ends."""
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
        """Return where the pieces of a partition are, by map task."""
        have = self.outputs[wide.number]
        outputs: list[MapOutput] = [have[t][1] for t in sorted(have)]
        return [(output.path, output.pieces[partition]) for output in outputs]
