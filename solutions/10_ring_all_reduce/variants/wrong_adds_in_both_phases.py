"""Adds in the all-gather phase too, so that complete chunks are counted again."""

POINTS = 4.0
HINT = "Complete chunks replace"
REPLACE = {
    "comm.sendrecv(chunks[(complete - step) % n], target,": (
        "target += comm.sendrecv(chunks[(complete - step) % n], target.clone(),"
    )
}
