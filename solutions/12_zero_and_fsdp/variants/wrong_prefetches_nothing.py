"""Hands its passes of step 2 in again."""

POINTS = 7.0
HINT = "In forward a layer waits"

prefetching_forward = forward
prefetching_backward = backward
