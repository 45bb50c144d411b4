"""How nodes agree, or fail to: stores that can be broken, and what judges them."""

from distlab.agree.staleness import staleness
from distlab.agree.stores import (
    Forgetful,
    LastWriterWins,
    PrimaryCopy,
    Quorum,
    VersionVectors,
)
from distlab.agree.workload import final_reads, workload

__all__ = [
    "Forgetful",
    "LastWriterWins",
    "PrimaryCopy",
    "Quorum",
    "VersionVectors",
    "final_reads",
    "staleness",
    "workload",
]
