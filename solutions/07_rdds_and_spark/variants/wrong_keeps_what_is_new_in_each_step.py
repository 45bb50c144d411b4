"""Caches the assignments, which the next step does not use."""

POINTS = 7.0
HINT = "Another RDD is kept in each step"
REPLACE = {
    ").cache()": ")",
    "point, 1)))": "point, 1))).cache()",
}
