"""`Watched`: a Context for a program on trial, which notes what its jobs did."""

import io
import pickle
import zlib
from collections.abc import Callable
from contextlib import suppress
from itertools import chain
from typing import NamedTuple

from distlab.dataflow import RDD, Context
from distlab.dataflow.rdd.chunks import read_segments
from distlab.dataflow.rdd.report import JobReport
from distlab.dataflow.rdd.shared import Accumulator, Broadcast
from distlab.dataflow.trial.rdd_twin import TwinExecutor
from distlab.dataflow.trial.sealed import Sealed, SealedTuple

__all__ = ["Seen", "Watched"]


class Seen(NamedTuple):
    """One job: its report, and how many bytes its driver got and its shuffles have.

    Of what is sealed in them nothing counts that is in another one, too.
    """

    job: JobReport
    got_bytes: int
    sent_bytes: int


class Watched(Context):
    """A Context that notes of every job what the driver got, and kills when told to.

    seen: what each job was. broadcasts: number -> one that was made.
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
        added = self._added()
        try:
            results = super().run(node, operation, fn, partitions, fresh=fresh)
        finally:
            changed = [new for new in self._added().items() if new not in added.items()]
            size = _size_bytes([results, changed])
            for job in self.jobs[before:]:
                self.seen.append(Seen(job, size, self._sent_bytes(job)))
        if len(self.seen) == self.kill_after:
            self._kill_one()
        return results

    def _added(self):
        """Return number -> value of each accumulator."""
        return {number: each._value for number, each in self._accumulators.items()}

    def _sent_bytes(self, job):
        """Return how many bytes are in the shuffles of a job."""
        outputs = (self.cluster.have.outputs.get(each, {}) for each in job.shuffled)
        chunks = []
        for _, output in chain.from_iterable(each.values() for each in outputs):
            with suppress(FileNotFoundError):  # its worker may have died since
                segments = list(chain.from_iterable(output.pieces))
                chunks += read_segments(output.path, segments)
        return _size_bytes(chunks)

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
    """Return how many bytes there are, each class of the notebook's counted once.

    An object of such a class is sealed together with all of it.
    """
    file, firsts = io.BytesIO(), {}
    pickler = _Apart(file)
    pickler.dump(results)
    size = file.tell()
    for one in pickler.sealed:
        first = firsts.setdefault(one.kind, one.data)
        if first is one.data:
            size += len(first)
        else:
            compressor = zlib.compressobj(zdict=first)
            size += len(compressor.compress(one.data) + compressor.flush())
    return size


class _Apart(pickle.Pickler):
    """Pickles all but what is sealed, of which it makes a list."""

    def __init__(self, file):
        super().__init__(file)
        self.sealed = []

    def reducer_override(self, thing):
        if type(thing) is SealedTuple:
            thing = thing.sealed
        if type(thing) is not Sealed:
            return NotImplemented
        self.sealed.append(thing)
        return bytes, ()
