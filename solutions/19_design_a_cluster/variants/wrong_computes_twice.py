"""Computes the step of each layout twice."""

POINTS = 7.0
HINT = "computed more than once"
REPLACE = {
    "(step_seconds(index), index))": "(max(map(step_seconds, (index, index))), index))"
}
