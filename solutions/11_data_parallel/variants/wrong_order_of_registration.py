"""Fills buckets from the first layer on."""

POINTS = 7.0
HINT = "Is this the order of registration"
REPLACE = {
    "reversed(parameters)": "parameters",
}
