"""Adds on the second lap too, so that complete chunks are counted again."""

POINTS = 3.0
HINT = "complete chunks replace"
REPLACE = {
    "comm.sendrecv(chunks[(rank + 1 - step) % n], target": (
        "target += comm.sendrecv(chunks[(rank + 1 - step) % n], target.clone()"
    )
}
