"""Replicated stores that faults can break, and checkers of their histories."""

from distlab.agree import pbs
from distlab.agree.checkers.causal import check_causal
from distlab.agree.checkers.converged import check_converged
from distlab.agree.checkers.history_verdict import HistoryVerdict
from distlab.agree.checkers.linearizable import check_linearizable
from distlab.agree.checkers.sequential import check_sequential
from distlab.agree.checkers.sessions import (
    check_monotonic_reads,
    check_monotonic_writes,
    check_read_your_writes,
    check_writes_follow_reads,
)
from distlab.agree.sequential_specifications import (
    ANY,
    CasRegister,
    KeyValue,
    Lock,
    Model,
    Queue,
    Register,
    Set,
)
from distlab.agree.staleness import staleness
from distlab.agree.store_comparison import STORES, Survey, survey
from distlab.agree.store_measurement import Measured, final_reads, measure, workload
from distlab.agree.stores import (
    Causal,
    DynamoStore,
    LastWrite,
    LastWriterWins,
    PrimaryCopy,
    Quorum,
    VersionVectors,
    preference_list,
)

__all__ = [
    "ANY",
    "STORES",
    "CasRegister",
    "Causal",
    "DynamoStore",
    "HistoryVerdict",
    "KeyValue",
    "LastWrite",
    "LastWriterWins",
    "Lock",
    "Measured",
    "Model",
    "PrimaryCopy",
    "Queue",
    "Quorum",
    "Register",
    "Set",
    "Survey",
    "VersionVectors",
    "check_causal",
    "check_converged",
    "check_linearizable",
    "check_monotonic_reads",
    "check_monotonic_writes",
    "check_read_your_writes",
    "check_sequential",
    "check_writes_follow_reads",
    "final_reads",
    "measure",
    "pbs",
    "preference_list",
    "staleness",
    "survey",
    "workload",
]
