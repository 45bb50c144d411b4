"""How nodes agree, or fail to: stores that can be broken, and what judges them."""

from distlab.agree.measure import measure
from distlab.agree.measured import Measured
from distlab.agree.staleness import staleness
from distlab.agree.stores import (
    Causal,
    Forgetful,
    LastWriterWins,
    PrimaryCopy,
    Quorum,
    VersionVectors,
)
from distlab.agree.survey import STORES, Survey, survey
from distlab.agree.workload import final_reads, workload

__all__ = [
    "STORES",
    "Causal",
    "Forgetful",
    "LastWriterWins",
    "Measured",
    "PrimaryCopy",
    "Quorum",
    "Survey",
    "VersionVectors",
    "final_reads",
    "measure",
    "staleness",
    "survey",
    "workload",
]
