"""Broadcasts the table, and sends it in every function all the same."""

POINTS = 7.0
HINT = "Where must .value be read"
REPLACE = {
    "broadcast(table)": "broadcast(table).value",
    "each)) for each in sent.value": "x)) for x in sent",
}
