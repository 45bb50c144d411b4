"""Somebody's functions on trial: in jobs of processes of their own, under watch.

    check ── Trial: files, functions, plans ──▶ owner ──▶ workers ──▶ their twins
          ◀── Tried for each plan, or Failed ── jobs      engine      the functions

What a trial is for: to compare jobs that should give the same, with other workers,
other splits, other hash seeds, and whatever goes wrong. It ends when its time is over.
"""

from distlab.dataflow.trial.plain import Odd
from distlab.dataflow.trial.trial import Failed, Plan, Trial, Tried
from distlab.processes.apart import TrialTimeout

__all__ = ["Failed", "Odd", "Plan", "Trial", "TrialTimeout", "Tried"]
