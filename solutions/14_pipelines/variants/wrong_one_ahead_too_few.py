"""The warm-up is one forward pass short: the pipeline never fills."""

POINTS = 7.0
HINT = "first hatched gap"
REPLACE = {"stages - stage - 1)": "max(0, stages - stage - 2))"}
