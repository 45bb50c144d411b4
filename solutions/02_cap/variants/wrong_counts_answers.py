"""Counts answers, and one node twice if its message comes twice."""

POINTS = 6.0
HINT = "Two answers of one node are one node"
REPLACE = {
    "len(heard)": "len(work.answers)",
}
