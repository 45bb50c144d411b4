"""Sorts losses with NaN among them, which leaves them in any order."""

POINTS = 0.0
HINT = "NaN counts among the n"
REPLACE = {
    ("[trial for trial in losses if not math.isnan(losses[trial])]"): "[*losses]",
}
