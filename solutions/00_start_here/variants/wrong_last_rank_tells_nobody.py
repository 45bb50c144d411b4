"""The last rank sends to a rank that does not exist."""

POINTS = 4.0
HINT = "Nobody comes after the last rank"
REPLACE = {
    "if comm.rank < comm.world_size - 1:": "if True:",
}
