"""Takes the largest elements, and never sends a negative one."""

POINTS = 0.0
HINT = "were large negative elements left out"
REPLACE = {
    "indices = flat.abs().topk(k).indices\n    return to_bytes(indices.int()": (
        "indices = flat.topk(k).indices\n    return to_bytes(indices.int()"
    ),
    "indices = flat.abs().topk(k).indices\n        short": (
        "indices = flat.topk(k).indices\n        short"
    ),
}
