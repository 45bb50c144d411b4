"""Gathers in forward, and keeps the layers for backward in a list."""

POINTS = 6.0
HINT = "Layers stay after they have worked"
REPLACE = {
    "model.inputs = []\n    for layer": (
        "model.inputs, model.fulls = [], []\n    for layer"
    ),
    "x = layer(whole(model.comm, part, length), x)": (
        "model.fulls.append(whole(model.comm, part, length))\n"
        "            x = layer(model.fulls[-1], x)"
    ),
    "whole(model.comm, part, length).requires_grad_()": (
        "model.fulls.pop().requires_grad_()"
    ),
}
