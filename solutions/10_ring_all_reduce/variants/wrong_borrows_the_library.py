"""Calls distlab's own algorithms under other names."""

from distlab.collectives import hierarchical_all_reduce, ring_all_reduce

POINTS = 0.0
HINT = "Nothing of your own does the work"


def reduce_scatter(comm, chunks, ring):
    ring_all_reduce(comm, chunks[0])
    return comm.rank


def all_reduce(comm, tensor, ring):
    ring_all_reduce(comm, tensor)


def hierarchical(comm, tensor, per_node):
    hierarchical_all_reduce(comm, tensor, ranks_per_node=per_node)
