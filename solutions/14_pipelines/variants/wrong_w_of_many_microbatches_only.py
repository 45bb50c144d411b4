"""Does a W of microbatch -1 where there are fewer microbatches than stages."""

POINTS = 7.0
HINT = "Kinds are 'F', 'B' and 'W', and microbatches count from 0"
REPLACE = {"range(max(0, microbatches - stage)": "range(microbatches - stage"}
