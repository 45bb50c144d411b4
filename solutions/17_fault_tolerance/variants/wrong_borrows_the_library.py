"""Asks the library's Checkpoints to do it."""

from distlab.train.checkpoint import Checkpoints

POINTS = 0.0
HINT = "nothing of the library"


def save(comm, disk, state):
    Checkpoints(comm, "checkpoints").save(state["step"], state)
