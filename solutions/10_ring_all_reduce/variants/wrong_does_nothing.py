"""Returns a plausible index and leaves the numbers alone."""

POINTS = 0.0
HINT = "has to arrive through comm"


def reduce_scatter(comm, chunks):
    return comm.rank


def ring(comm, tensor):
    return tensor
