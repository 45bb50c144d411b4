"""Data on many workers: MapReduce, on real worker processes, with files in between.

    inputs ─ splits ─▶ map tasks ─ sorted runs, on local disks ─▶ reduce tasks ─▶ parts
             lines     mapper,     one piece per partition        merge,
                       combiner                                   reducer

Read in this order: `mapreduce` (the face), `job` (who does what next, and what a death
costs), `schedule` (those decisions alone, without a process or a clock), `splits`,
`lines`, `map_task`, `table` (memory, and what to do when it is short), `sizes` (how
much it is), `runs` (sorted pairs in a file), `reduce_task`, `notes` (what a dead worker
was at). `workers` and `worker` are the two ends of a pool that knows
nothing of any of these. `replay` has the same decisions made for thousands of
`machines` that are not there. RDDs, on the same pool, are in
`rdd/`. No torch is loaded here.
"""

from distlab.dataflow.machines import Machines
from distlab.dataflow.mapreduce import MapReduce
from distlab.dataflow.output import Output
from distlab.dataflow.rdd import RDD, Context, StorageLevel
from distlab.dataflow.replay import simulate
from distlab.dataflow.simulated import Simulated

__all__ = [
    "RDD",
    "Context",
    "Machines",
    "MapReduce",
    "Output",
    "Simulated",
    "StorageLevel",
    "simulate",
]
