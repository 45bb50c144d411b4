"""RDDs: data sets on workers, known by how they are made, and so never lost for good.

    notebook                                   workers
    ────────                                   ───────
    RDD ─ RDD ═ RDD   lineage     program      executor: chains of iterators
     action ─▶ stages ─▶ tasks ──────────────▶           cache
     results ◀─────────────────────────────────          shuffle files

Read in this order: `context` (the face), `rdd` and `transform` (what a learner calls),
`graph` (data sets and their dependencies), `stages` (the graph cut at its shuffles, and
what is missing), `scheduler` (an action under way), `locations` (what is on which
worker), `executor` (a task), `cache`, `shuffle`, `merge` (memory, and what to do when
it is short), `shared` (broadcasts and accumulators), `failures`, `report`. The rest is
the library of operations: `pairs`, `joins`, `actions`, `files`, `text`.

Source: Zaharia et al., "Resilient Distributed Datasets: A Fault-Tolerant Abstraction
for In-Memory Cluster Computing" (2012).
"""

from distlab.dataflow.rdd.cache import StorageLevel
from distlab.dataflow.rdd.context import Context
from distlab.dataflow.rdd.rdd import RDD

__all__ = ["RDD", "Context", "StorageLevel"]
