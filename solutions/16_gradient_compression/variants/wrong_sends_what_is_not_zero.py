"""Sends fewer elements where some of the k largest are 0."""

POINTS = 7.0
HINT = "k follows from the density"
REPLACE = {
    "indices = flat.abs().topk(k).indices\n    return": (
        "indices = flat.abs().topk(min(k, max(1, flat.count_nonzero()))).indices\n"
        "    return"
    ),
}
