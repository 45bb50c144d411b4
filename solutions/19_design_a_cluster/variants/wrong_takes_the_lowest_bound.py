"""Takes the layout with the lowest bound."""

POINTS = 7.0
HINT = "Another layout that fits is faster"
REPLACE = {
    "    best_s, best = math.inf, None\n": (
        "    return min(bounds)[1] if bounds else None\n"
        "    best_s, best = math.inf, None\n"
    )
}
