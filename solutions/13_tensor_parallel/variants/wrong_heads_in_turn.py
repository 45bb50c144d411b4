"""Deals key-value heads to the ranks in turn, instead of in stretches."""

POINTS = 7.0
HINT = "heads // kv_heads query heads in a row"
REPLACE = {
    "first, last = mine.start // group, (mine.stop - 1) // group": (
        "first = last = mine.start % attention.kv_heads"
    )
}
