"""All-gathers the partial outputs of all ranks, and adds them up."""

from distlab.collectives import ring_all_gather

POINTS = 0.0
HINT = "Whole tensors of other ranks"
REPLACE = {"return summed(comm, partial)": "return sum(ring_all_gather(comm, partial))"}
