"""Takes what a broadcast returns for the table."""

POINTS = 7.0
HINT = "What travels is a handle"
REPLACE = {
    "each)) for each in sent.value": "x)) for x in sent",
}
