"""Returns GiB times 10**9."""

POINTS = 6.0
HINT = "in the wrong unit"
REPLACE = {"/ tp + reserved": "/ tp * 1e9 / 2**30 + reserved * 1e9 / 2**30"}
