"""Asks the library, which the process lacks."""

from distlab.cost import zero_memory

POINTS = 6.0
HINT = "Nothing of your own does the work"


def memory(model, layout, reserved):
    return zero_memory(model["layer"] * model["layers"], layout["dp"], layout["zero"])
