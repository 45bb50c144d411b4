"""Adds whole numbers, and drops what is behind the point."""

POINTS = 0.0
HINT = "its fraction is lost"
REPLACE = {
    "target += comm.sendrecv(chunks[(place - step) % n], arrived, **neighbors)": (
        "arrived = comm.sendrecv(chunks[(place - step) % n], arrived, **neighbors)\n"
        "        target.copy_(target.int() + arrived.int())"
    ),
}
