"""A world of ranks from a cell: started, watched, ended, and its failures told.

    cell ── run(fn, 4) ──▶ travel: fn as bytes ──▶ ranks: fork, call, watch ──▶ Report
                                                     │ waits: who can never go on
                                                     ▼
                                                   story: which rank, why ─▶ WorldFailed

`follow` is a run on inputs that tell whose they are.

Nothing here loads torch in the process of the cell; only `rank` and `witness` use it,
and they are imported in the ranks alone.
"""

import sys

from distlab.launch.elastic import ElasticReport, ElasticWorld, run_elastic
from distlab.launch.follow import follow
from distlab.launch.machine import PRELOAD, start_method
from distlab.launch.relayed import Relaying, kept_ranks
from distlab.launch.report import Report
from distlab.launch.world import World, run
from distlab.processes import inside, warm_up

__all__ = [
    "ElasticReport",
    "ElasticWorld",
    "Relaying",
    "Report",
    "World",
    "follow",
    "kept_ranks",
    "run",
    "run_elastic",
]

if "ipykernel" in sys.modules and inside() is None:
    # Importing torch takes seconds, which pass while a notebook's reader still reads.
    warm_up(PRELOAD, start_method()[0])
