"""Overwrites with what arrives, in both phases."""

POINTS = 0.0
HINT = "An incomplete chunk was passed on. First add what arrives"
REPLACE = {
    "target += comm.sendrecv(chunks[(place - step) % n], arrived": (
        "comm.sendrecv(chunks[(place - step) % n], target"
    )
}
