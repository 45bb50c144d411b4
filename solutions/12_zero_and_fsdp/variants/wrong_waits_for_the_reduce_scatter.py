"""Waits for each reduce-scatter as soon as it has started it."""

POINTS = 7.0
HINT = "a layer waits for one collective"
REPLACE = {
    "leaving.append((model.parts[i], away))": (
        "leaving.append((model.parts[i], away))\n        settle()"
    ),
}
