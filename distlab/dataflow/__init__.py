"""Data on many workers: MapReduce, on real worker processes, with files in between.

    inputs ─ splits ─▶ map tasks ─ sorted runs, on local disks ─▶ reduce tasks ─▶ parts
             lines     mapper,     one piece per partition        merge,
                       combiner                                   reducer

In `mapreduce/` read `mapreduce` (the public class), `job` (the loop that hands out
tasks and handles deaths), `task_states` (its decisions alone, without a process or a
clock), `map_task`, `map_output_buffer` (bounded memory, and spilling), `sorted_runs`,
`reduce_task`; `simulation` makes the same decisions for thousands of machines. RDDs are
in `rdd/`. Both use `workers` and `worker`, the two ends of a pool, and `splits`,
`line_boundaries`, `memory_estimate`, `record_notes`. No torch is loaded here.
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
