"""Atomic commit: several nodes carry out a transaction together, or none of them does.

two_phase       needs all votes; a dead coordinator can block the participants
three_phase     does not block if crashes are detected reliably; a partition breaks it
crash_points    the coordinator killed at five points, simulated or as a process
properties      invariants for a search
"""

from distlab.agree.commit.crash_points import POINTS, StopsAtPoint, crash_points
from distlab.agree.commit.properties import atomic, never_blocks
from distlab.agree.commit.three_phase import ThreePhaseCommit
from distlab.agree.commit.two_phase import TwoPhaseCommit

__all__ = [
    "POINTS",
    "StopsAtPoint",
    "ThreePhaseCommit",
    "TwoPhaseCommit",
    "atomic",
    "crash_points",
    "never_blocks",
]
