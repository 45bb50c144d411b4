"""Overwrites with what arrives, in both phases."""

POINTS = 0.0
HINT = "Nothing was added"
REPLACE = {
    "target += comm.sendrecv(chunks[(place - step) % n], arrived": (
        "comm.sendrecv(chunks[(place - step) % n], target"
    )
}
