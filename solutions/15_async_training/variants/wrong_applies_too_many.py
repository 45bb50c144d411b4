"""Applies what comes after the last update."""

POINTS = 7.0
HINT = "until `updates` gradients were"
REPLACE = {
    "            if not over:\n                ready = server.push": (
        "            if True:\n                ready = server.push"
    ),
}
