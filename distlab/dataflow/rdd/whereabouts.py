"""What is where: the map outputs and kept partitions that live workers have."""

from collections import defaultdict

from distlab.dataflow.rdd.graph import Narrow, Node, Wide
from distlab.dataflow.rdd.shuffle import MapOutput

__all__ = ["Whereabouts"]


class Whereabouts:
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

    def sources(
        self, node: Node, partition: int
    ) -> tuple[list[tuple[Wide, int]], list]:
        """Return what a task needs: (shuffle, partition) pieces, and kept partitions.

        What is behind a kept partition is not needed.
        """
        pieces, kept, seen, waiting = [], [], set(), [(node, partition)]
        while waiting:
            node, partition = waiting.pop()
            if (node.number, partition) in seen:
                continue
            seen.add((node.number, partition))
            if self.is_kept(node, partition):
                kept.append((node.number, partition))
                continue
            for each in node.dependencies:
                if isinstance(each, Narrow):
                    waiting += [(each.parent, p) for p in each.needs(partition)]
                else:
                    pieces.append((each, partition))
        return pieces, kept

    def places(self, wide: Wide, partition: int) -> list[tuple[str, list]]:
        """Return where the pieces of a partition are, by map task."""
        have = self.outputs[wide.number]
        outputs: list[MapOutput] = [have[t][1] for t in sorted(have)]
        return [(output.path, output.pieces[partition]) for output in outputs]
