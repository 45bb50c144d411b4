"""Assumes more microbatches than stages."""

POINTS = 7.0
HINT = "With fewer microbatches than stages"
REPLACE = {
    "ahead = min(microbatches, stages - stage - 1)": "ahead = stages - stage - 1"
}
