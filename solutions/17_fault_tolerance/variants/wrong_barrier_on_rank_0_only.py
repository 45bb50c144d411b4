"""Rank 0 waits for ranks that have gone on."""

POINTS = 0.0
HINT = "Which branch does only one of them"
REPLACE = {
    "    comm.barrier()\n    if comm.rank == 0:\n": (
        "    if comm.rank == 0:\n        comm.barrier()\n"
    ),
}
