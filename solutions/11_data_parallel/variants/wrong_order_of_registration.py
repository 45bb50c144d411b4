"""Fills buckets from the first layer on."""

POINTS = 7.0
HINT = "This is the order of registration"
REPLACE = {
    "reversed(parameters)": "parameters",
}
