"""Uses an all-reduce in place of a reduce-scatter, and takes its rows of it."""

POINTS = 7.0
HINT = "a reduce-scatter and an all-gather"


def piece_of_sum(comm, tensor):
    return summed(comm, tensor).chunk(comm.world_size)[comm.rank]
