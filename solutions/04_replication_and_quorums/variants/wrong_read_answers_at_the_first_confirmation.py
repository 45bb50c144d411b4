"""Takes a repair that was sent for one that has arrived, once another is confirmed."""

POINTS = 7.0
HINT = "An earlier read returned a value that too few nodes"
REPLACE = {
    "stale = {node for node, copy in work.copies.items() if copy < newest}": (
        "stale = {n for n, copy in work.copies.items() if copy < newest}\n"
        "        stale -= work.repaired"
    )
}
