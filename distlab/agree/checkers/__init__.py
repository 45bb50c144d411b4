"""Checkers: a search for an order of a history's operations that explains each result.

    strong   check_linearizable    one order, which keeps real time
             check_sequential      one order, which keeps each client's own order
             check_causal          an order for each client, which keeps causality
             check_read_your_writes, check_monotonic_reads,
             check_monotonic_writes, check_writes_follow_reads
    weak     check_converged       finally all clients read the same

Each returns a `HistoryVerdict`: ok, violated or inconclusive, with the reason.
"""
