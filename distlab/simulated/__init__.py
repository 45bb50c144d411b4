"""Simulated ranks, hundreds of them, on a virtual clock: same functions, same trace.

    from distlab import run
    from distlab.links import Link
    from distlab.simulated import Uniform

    run(fn, 256, fabric=Uniform(Link(latency_s=5e-6, bytes_per_s=12.5e9)))

Ranks are coroutines of one process; their data is real, their waiting is simulated.
"""

from distlab.simulated.comm import SimulatedComm
from distlab.simulated.engine import Engine
from distlab.simulated.event_table import SimulatedTrace
from distlab.simulated.fabric import (
    Computing,
    Fabric,
    FatTree,
    Jittered,
    Nodes,
    Overlapped,
    Placed,
    Rails,
    Slowed,
    SlowRank,
    Uniform,
    Way,
    Wires,
)
from distlab.simulated.payloads import Payload
from distlab.simulated.shared_trace import SimulatedBoard

__all__ = [
    "Computing",
    "Engine",
    "Fabric",
    "FatTree",
    "Jittered",
    "Nodes",
    "Overlapped",
    "Payload",
    "Placed",
    "Rails",
    "SimulatedBoard",
    "SimulatedComm",
    "SimulatedTrace",
    "SlowRank",
    "Slowed",
    "Uniform",
    "Way",
    "Wires",
]
