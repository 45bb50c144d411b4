"""A world of ranks from a cell: started, monitored, ended, and its failures diagnosed.

    cell ── run(fn, 4) ──▶ serialize: fn as bytes ──▶ ranks: fork, call, poll ──▶ Report
                                                     │ waits: ranks stuck forever
                                                     ▼
                                                   story: which rank, why ─▶ WorldFailed

`follow` is a run on inputs that identify each rank's contribution.

Nothing here loads torch in the process of the cell; only `rank` and
`collective_hooks` use it, and they are imported in the ranks alone.
"""

import sys
from importlib import import_module

from distlab.launch.machine import PRELOAD, start_method
from distlab.processes import inside, warm_up

_HOME = {
    "ElasticReport": "elastic",
    "ElasticWorld": "elastic",
    "Relaying": "relayed",
    "Report": "report",
    "World": "world",
    "follow": "follow",
    "kept_ranks": "relayed",
    "run": "world",
    "run_elastic": "elastic",
}

__all__ = sorted(_HOME)


def __getattr__(name):
    if name not in _HOME:
        raise AttributeError(f"module 'distlab.launch' has no attribute {name!r}")
    found = getattr(import_module(f"distlab.launch.{_HOME[name]}"), name)
    globals()[name] = found
    return found


if "ipykernel" in sys.modules and inside() is None:
    # Importing torch takes seconds, which pass while a notebook's reader still reads.
    warm_up(PRELOAD, start_method()[0])
