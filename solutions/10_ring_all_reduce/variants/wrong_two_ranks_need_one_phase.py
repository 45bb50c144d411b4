"""Takes two ranks for done after the reduce-scatter."""

POINTS = 4.0
HINT = "complete, but only on other ranks"
REPLACE = {
    "complete = reduce_scatter(comm, chunks, ring)": (
        "complete = reduce_scatter(comm, chunks, ring)\n"
        "    if len(ring) == 2:\n"
        "        return"
    ),
}
