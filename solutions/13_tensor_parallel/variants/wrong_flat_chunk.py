"""Leaves the chunk of the reduce-scatter flat."""

POINTS = 7.0
HINT = "give it its rows"
REPLACE = {
    ".view(-1, tensor.shape[1]).clone()": ".clone()",
}
