"""Calls distlab's own ring under another name."""

from distlab.collectives import ring_all_reduce

POINTS = 0.0
HINT = "Nothing of your own"


def reduce_scatter(comm, chunks):
    ring_all_reduce(comm, chunks[0])
    return comm.rank


ring = ring_all_reduce
