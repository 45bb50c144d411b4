"""One ring of all ranks, whichever node they are in."""

POINTS = 7.0
HINT = "one NIC carries it while the others wait"


def hierarchical(comm, tensor, per_node):
    all_reduce(comm, tensor, list(range(comm.world_size)))
