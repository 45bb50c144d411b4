"""Cuts heads as torch.chunk does: 2, 2, 2 and none, where 2, 2, 1 and 1 are due."""

POINTS = 7.0
HINT = "its share, of which the first count % n ranks have one more"
REPLACE = {
    "mine = share(heads, comm.world_size, comm.rank)": (
        "size = -(-heads // comm.world_size)\n"
        "    start = min(heads, comm.rank * size)\n"
        "    mine = slice(start, min(heads, start + size))"
    )
}
