"""Data on many workers: MapReduce, on real worker processes, with files in between.

    inputs ─ splits ─▶ map tasks ─ sorted runs, on local disks ─▶ reduce tasks ─▶ parts
             lines     mapper,     one piece per partition        merge,
                       combiner                                   reducer

Read in this order: `mapreduce` (the public class), `job` (the loop that hands out tasks
and handles deaths), `schedule` (its decisions alone, without a process or a clock),
`splits`, `lines`, `map_task`, `table` (bounded memory, and spilling), `sizes`
(estimates of memory), `runs` (sorted pairs in a file), `reduce_task`, `notes` (the last
record of a dead worker). `workers` and `worker` are the two ends of a pool that does
not depend on any of these. `replay` runs the same schedule for thousands of simulated
`machines`. RDDs, on the same pool, are in `rdd/`. No torch is loaded here.
"""

from distlab.dataflow.mapreduce.mapreduce import MapReduce
from distlab.dataflow.mapreduce.output import Output
from distlab.dataflow.mapreduce.simulated_job import Machines, SimulatedJob
from distlab.dataflow.mapreduce.simulation import simulate
from distlab.dataflow.rdd import RDD, Context, StorageLevel

__all__ = [
    "RDD",
    "Context",
    "Machines",
    "MapReduce",
    "Output",
    "SimulatedJob",
    "StorageLevel",
    "simulate",
]
