"""Checkers: does any order of a history's operations explain every answer?

    strong   check_linearizable    one order, in which time counts
             check_sequential      one order, in which each client's own order counts
             check_causal          an order for each client, in which causes count
             check_read_your_writes, check_monotonic_reads,
             check_monotonic_writes, check_writes_follow_reads
    weak     check_converged       in the end all read the same

Each returns a `Verdict`: ok, violated or inconclusive, and why.
"""

from distlab.agree.checkers.causal import check_causal
from distlab.agree.checkers.converged import check_converged
from distlab.agree.checkers.linearizable import check_linearizable
from distlab.agree.checkers.sequential import check_sequential
from distlab.agree.checkers.sessions import (
    check_monotonic_reads,
    check_monotonic_writes,
    check_read_your_writes,
    check_writes_follow_reads,
)
from distlab.agree.checkers.verdict import Verdict

__all__ = [
    "Verdict",
    "check_causal",
    "check_converged",
    "check_linearizable",
    "check_monotonic_reads",
    "check_monotonic_writes",
    "check_read_your_writes",
    "check_sequential",
    "check_writes_follow_reads",
]
