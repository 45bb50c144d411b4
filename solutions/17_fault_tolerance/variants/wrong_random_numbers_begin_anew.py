"""The random numbers of the beginning come twice."""

POINTS = 0.0
HINT = "of which moment"
REPLACE = {"if world_size == comm.world_size:": "if False:"}
