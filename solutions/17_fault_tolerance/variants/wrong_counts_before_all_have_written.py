"""Rank 0 commits without waiting for the others, of which one is late."""

POINTS = 0.0
HINT = "A file is asked for"
REPLACE = {
    "    comm.barrier()\n": "",
    "    disk.write(mine, pickle": (
        "    with comm.work('late', seconds=0.02 * comm.rank):\n"
        "        pass\n"
        "    disk.write(mine, pickle"
    ),
}
