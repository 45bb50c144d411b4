"""The warm-up has one forward pass too many, so every stage holds one too many."""

POINTS = 7.0
HINT = "Which F runs while the stage is full"
REPLACE = {"min(microbatches, stages - stage - 1)": "min(microbatches, stages - stage)"}
