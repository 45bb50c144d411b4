"""Keeps the activations of one microbatch."""

POINTS = 6.0
HINT = "more than one microbatch"
REPLACE = {
    "min(pp, m) * ends": "ends",
    'last = (ends * model["kept"] + model["logits"]) * tokens': "last = first",
}
