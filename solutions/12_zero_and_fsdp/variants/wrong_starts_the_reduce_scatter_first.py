"""Starts the next all-gather in backward when the layer has worked."""

POINTS = 7.0
HINT = "a layer waits for two collectives"
REPLACE = {
    "if i > 0:\n            request": "if False:\n            request",
    "leaving.append((model.parts[i], away))\n": (
        "leaving.append((model.parts[i], away))\n"
        "        if i > 0:\n"
        "            request = model.comm.start(whole, *parts[i - 1])\n"
    ),
}
