"""MapReduce: two functions, and everything between them.

    def mapper(line):
        for word in line.split():
            yield word, 1

    def reducer(word, counts):
        return sum(counts)

    output = MapReduce(mapper, reducer, combiner=reducer).run("folder", workers=2)

Source: Dean and Ghemawat, "MapReduce: Simplified Data Processing on Large Clusters"
(2004).
"""

import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import repeat

from distlab.calls.serialize import pack_functions
from distlab.dataflow.arguments import check_limits
from distlab.dataflow.line_boundaries import line_number
from distlab.dataflow.mapreduce.job import MapReduceJob
from distlab.dataflow.mapreduce.output import Counters, Output
from distlab.dataflow.splits import files_of, split_sizes, splits_of
from distlab.dataflow.user_functions import check_functions
from distlab.dataflow.workers import Workers, folder_in
from distlab.errors import InvalidArgument
from distlab.faults import WorkerFault, check_worker_faults
from distlab.processes import Interrupts
from distlab.units import MiB

__all__ = ["MapReduce"]


class MapReduce:
    """A job: a function for every line, and one for all values of every key.

    mapper: called as mapper(line), or as mapper(name, line) if it takes two arguments,
    with a line of the input without its end and the name of its file. It yields, or
    returns, any number of (key, value) pairs.
    reducer: called as reducer(key, values) once for each key, with an iterator over all
    its values; it returns the key's value, or yields several, or none.
    combiner: called like the reducer on the way, with some of a key's values, any
    number of times; what it returns takes their place. Where the order and grouping of
    values do not matter, as for a sum, it is the reducer itself.
    partitioner: called as partitioner(key, reducers); returns the number of the reducer
    that gets the key. Without one it is a hash of the key.

    Keys are strings, bytes, numbers or tuples of them, all of one kind, as they are
    hashed and sorted.

    Raises: InvalidArgument for functions that cannot be called so.
    """

    def __init__(
        self,
        mapper: Callable,
        reducer: Callable,
        *,
        combiner: Callable | None = None,
        partitioner: Callable | None = None,
    ):
        self.functions = check_functions(mapper, reducer, combiner, partitioner)

    def run(
        self,
        inputs: str | os.PathLike | Iterable,
        *,
        workers: int = 2,
        reducers: int = 2,
        workdir: str | os.PathLike | None = None,
        faults: WorkerFault | Sequence[WorkerFault] = (),
        memory_bytes: int = 256 * MiB,
        skip_bad_records: int = 0,
        split_bytes: int | None = None,
        backups: bool = True,
    ) -> Output:
        """Run the job on `workers` processes; return its output.

        inputs: the path of a file or folder, several such Paths, or strings of text.
        workdir: where all is written and `output` stays; without it, temporary files.
        faults: `KillWorker` and `SlowWorker`, to break the run on purpose.
        memory_bytes: what a worker may take beside its own idle size, estimated from
        samples of the pairs; the rest goes to disk. A line may be an eighth of it.
        skip_bad_records: how many lines on which the mapper failed twice are left out.
        split_bytes: how much one map task reads; follows from the input if None.
        backups: whether a task that takes long gets a second attempt beside the first.

        Raises: TaskFailed if a function raises or a task ends its worker again and
        again; WorkdirError without room to write; InvalidArgument, NotSerializable,
        NestedWorld before anything starts; KeyboardInterrupt. None leaves a process or
        a file behind. If a worker dies: what it had mapped is mapped again by another.
        """
        check_limits(
            "MapReduce.run was called",
            workers=workers,
            reducers=reducers,
            memory_bytes=memory_bytes,
            skip_bad_records=skip_bad_records,
            split_bytes=1 if split_bytes is None else split_bytes,
        )
        faults = check_worker_faults(faults, workers)
        functions = pack_functions(self.functions, "a worker")
        limits = {"memory_bytes": memory_bytes, "skip_bad_records": skip_bad_records}
        limits["backups"] = bool(backups)
        with _folder(workdir) as folder:
            splits = _splits(inputs, folder, workers, split_bytes)
            pool = partial(Workers, workers, functions, folder=folder, faults=faults)
            job = partial(MapReduceJob, splits, reducers, folder=folder, **limits)
            return _done(pool, job, workdir)


@contextmanager
def _folder(workdir):
    """Make a folder for the job's files; remove it when the body ends."""
    new = workdir is not None and not os.path.lexists(workdir)
    final = os.path.join(workdir or "", "output")
    if workdir is not None and os.path.lexists(final):
        raise InvalidArgument(
            f"{final} is there already, perhaps of an earlier run. Remove it, or give "
            "another workdir."
        )
    folder = folder_in(workdir)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if new:
            with suppress(OSError):  # it has the output
                os.rmdir(workdir)


def _splits(inputs, folder, workers, split_bytes):
    files = files_of(inputs, folder)
    if split_bytes is not None:
        return splits_of(files, repeat(split_bytes))
    total = sum(os.path.getsize(path) for _, path in files)
    return splits_of(files, split_sizes(total, workers))


def _done(start_pool, make_job, workdir):
    """Run the job; return its output, opened or moved before the folder is removed."""
    with Interrupts() as interrupts:
        pool = start_pool()
        try:
            job = make_job(workers=pool)
            job.run(interrupts)
            output = _output(job, pool)
            if workdir is not None:
                output.paths = _moved(job.parts, workdir)
        finally:
            pool.close()
    return output


def _output(job, pool):
    counts = job.counts
    counts["map_tasks"] = len(job.schedule.maps)
    counts["reduce_tasks"] = len(job.schedule.reduces)
    return Output(
        job.parts,
        counters=Counters(**counts),
        shuffled=job.shuffled,
        trace=pool.trace(),
        elapsed_s=pool.now(),
        notes=_notes(job, counts),
    )


def _moved(parts, workdir):
    """Commit the parts, all of them by one rename; return their new paths."""
    final = os.path.join(os.path.abspath(workdir), "output")
    os.rename(os.path.dirname(parts[0]), final)
    return [os.path.join(final, os.path.basename(part)) for part in parts]


def _notes(job, counts):
    """Return remarks on extra attempts and skipped lines, one sentence each."""
    notes = []
    for kind in ("map", "reduce"):
        more = counts[f"{kind}_attempts"] - counts[f"{kind}_tasks"]
        if more:
            times = "1 attempt" if more == 1 else f"{more} attempts"
            notes.append(f"{times} more than there are {kind} tasks.")
    for path, offset in sorted(job.skipped):
        at = f"{os.path.basename(path)}, line {line_number(path, offset)}"
        notes.append(f"Skipped, because the mapper failed on it twice: {at}.")
    return notes
