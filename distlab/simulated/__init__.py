"""Hundreds of ranks on a virtual clock: the same functions, the same trace, no machine.

    from distlab import run
    from distlab.simulated import LINKS, Uniform

    run(fn, 256, fabric=Uniform(LINKS["InfiniBand NDR"]))
"""

from distlab.simulated.board import SimulatedBoard
from distlab.simulated.comm import SimulatedComm
from distlab.simulated.engine import Engine
from distlab.simulated.fabric import (
    Fabric,
    FatTree,
    Jittered,
    Nodes,
    Slowed,
    SlowRank,
    Uniform,
    Way,
    Wires,
)
from distlab.simulated.table import SimulatedTrace

__all__ = [
    "Engine",
    "Fabric",
    "FatTree",
    "Jittered",
    "Nodes",
    "SimulatedBoard",
    "SimulatedComm",
    "SimulatedTrace",
    "SlowRank",
    "Slowed",
    "Uniform",
    "Way",
    "Wires",
]
