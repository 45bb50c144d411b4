"""Leaves an infinite loss out of the top, as if it were NaN."""

POINTS = 0.0
HINT = "NaN counts among the n"
REPLACE = {
    "if not math.isnan(losses[trial])]": "if math.isfinite(losses[trial])]",
}
