"""A world of ranks from a cell: started, watched, ended, and its failures told.

    cell ── run(fn, 4) ──▶ travel: fn as bytes ──▶ ranks: fork, call, watch ──▶ Report
                                                     │ waits: who can never go on
                                                     ▼
                                                   story: which rank, why ──▶ WorldFailed
"""

from distlab.launch.report import Report
from distlab.launch.world import World, run

__all__ = ["Report", "World", "run"]
