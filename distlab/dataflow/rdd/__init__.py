"""RDDs: data sets on workers, recomputed from their lineage when partitions are lost.

    notebook                                   workers
    ────────                                   ───────
    RDD ─ RDD ═ RDD   lineage     program      executor: chains of iterators
     action ─▶ stages ─▶ tasks ──────────────▶           cache
     results ◀─────────────────────────────────          shuffle files

Read in this order: `context` (the entry point), `rdd` and `transform` (the public
operations), `dependencies` (of data sets), `stages` (the graph cut at its shuffles, and
missing tasks), `scheduler` (an action under way), `locations` (the data of each
worker), `executor` (a task), `cache`, `shuffle`, `spilling_aggregation`,
`shared_variables` (broadcasts and accumulators), `failure_location`, `report`. The
rest is the library of operations: `pairs`, `joins`, `actions`, `files`.

Source: Zaharia et al., "Resilient Distributed Datasets: A Fault-Tolerant Abstraction
for In-Memory Cluster Computing" (2012).
"""

from distlab.dataflow.rdd.cache import StorageLevel
from distlab.dataflow.rdd.context import Context
from distlab.dataflow.rdd.rdd import RDD

__all__ = ["RDD", "Context", "StorageLevel"]
