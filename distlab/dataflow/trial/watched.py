"""`Watched`: a Context for a program on trial, which notes what its jobs did."""

import io
import pickle
import zlib
from collections.abc import Callable

from distlab.dataflow import RDD, Context
from distlab.dataflow.rdd.shared import Accumulator, Broadcast
from distlab.dataflow.trial.rdd_twin import TwinExecutor
from distlab.dataflow.trial.sealed import Sealed

__all__ = ["Watched"]


class Watched(Context):
    """A Context that notes of every job what the driver got, and kills when told to.

    seen: (report, bytes of the results) of each job. broadcasts: all that were made.
    kill_after: the number of jobs after which a worker is killed. lost: the
    (RDD, partition) that it kept.
    """

    _executor = TwinExecutor

    def __init__(self, workers: int):
        super().__init__(workers)
        self.seen, self.broadcasts = [], {}
        self.kill_after, self.lost = None, None

    def run(
        self,
        node: RDD,
        operation: str,
        fn: Callable,
        partitions: object = None,
        *,
        fresh: bool = True,
    ) -> list:
        """Run a job, and note it."""
        before, results = len(self.jobs), None
        try:
            results = super().run(node, operation, fn, partitions, fresh=fresh)
        finally:
            self.seen += [(job, _size_bytes(results)) for job in self.jobs[before:]]
        if len(self.seen) == self.kill_after:
            self._kill_one()
        return results

    def broadcast(self, value: object) -> Broadcast:
        """Broadcast a value, and note it."""
        made = super().broadcast(value)
        self.broadcasts[made._number] = made
        return made

    def shared(self, kind: str, number: int) -> Broadcast | Accumulator:
        """Return a "broadcast" or "accumulator" by its number."""
        return (self.broadcasts if kind == "broadcast" else self._accumulators)[number]

    def setCheckpointDir(self, dirName: object) -> None:
        """Have checkpoints written, but to a folder of the engine's."""
        super().setCheckpointDir(self.cluster.folder)

    def _kill_one(self):
        """Kill the worker that keeps the least, of those that keep something."""
        kept = {}
        for key, workers in self.cluster.have.kept.items():
            for worker in workers:
                kept.setdefault(worker, []).append(key)
        victim = min(kept, key=lambda worker: (len(kept[worker]), worker), default=1)
        self.kill(victim)
        self.lost = kept.get(victim, [])

    def kills(self) -> int:
        """Return how many deaths the pool has noted."""
        events = self.cluster.pool.trace().events
        return sum(e.kind == "fault" and e.label == "kill" for e in events)


def _size_bytes(results):
    """Return how many bytes there are; what is sealed counts without what repeats.

    Each object of a class of the notebook's is sealed together with its class.
    """
    file, firsts = io.BytesIO(), {}
    pickler = _Apart(file)
    pickler.dump(results)
    size = file.tell()
    for one in pickler.sealed:
        first = firsts.setdefault(one.kind, one.data)
        known = b"" if first is one.data else first
        compressor = zlib.compressobj(zdict=known)
        size += len(compressor.compress(one.data) + compressor.flush())
    return size


class _Apart(pickle.Pickler):
    """Pickles all but what is sealed, of which it makes a list."""

    def __init__(self, file):
        super().__init__(file)
        self.sealed = []

    def reducer_override(self, thing):
        if type(thing) is not Sealed:
            return NotImplemented
        self.sealed.append(thing)
        return bytes, ()
