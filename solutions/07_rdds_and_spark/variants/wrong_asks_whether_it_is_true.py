"""Takes a value of 0 for one that is not there."""

POINTS = 6.0
HINT = "and not whether its value is true"
REPLACE = {
    "key in table": "table.get(key)",
}
