"""Joins heads without swapping heads and tokens back first."""

POINTS = 7.0
HINT = "Which dims are heads, tokens and head size"
REPLACE = {
    ".transpose(0, 1).flatten(1)": ".reshape(len(x), -1)",
}
