"""Gathers in forward, and keeps the layers for backward in a list."""

POINTS = 7.0
HINT = "Layers stay after they have worked"
REPLACE = {
    "model.inputs = []": "model.inputs, model.fulls = [], []",
    "with torch.no_grad():\n": (
        "model.fulls.append(whole(model.comm, part, length))\n"
        "        with torch.no_grad():\n"
    ),
    "layer(whole(model.comm, part, length), x)": "layer(model.fulls[-1], x)",
    "whole(model.comm, part, length).requires_grad_()": (
        "model.fulls.pop().requires_grad_()"
    ),
}
