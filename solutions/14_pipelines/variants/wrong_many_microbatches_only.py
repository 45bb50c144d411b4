"""Assumes more microbatches than stages."""

POINTS = 7.0
HINT = "the warm-up is shorter"
REPLACE = {
    "ahead = min(microbatches, stages - stage - 1)": "ahead = stages - stage - 1"
}
