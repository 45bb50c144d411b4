"""Checkers: does any order of a history's operations explain every answer?

    strong   check_linearizable    one order, in which time counts
             check_sequential      one order, in which each client's own order counts
             check_causal          an order for each client, in which causes count
             check_read_your_writes, check_monotonic_reads,
             check_monotonic_writes, check_writes_follow_reads
    weak     check_converged       in the end all read the same

Each returns a `Verdict`: ok, violated or inconclusive, and why.
"""
