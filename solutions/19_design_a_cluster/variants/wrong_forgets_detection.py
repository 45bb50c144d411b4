"""Counts no detection and no restart."""

POINTS = 7.0
HINT = "A failure also costs its detection"
REPLACE = {
    "(interval_s / 2 + recovery_s) / between_s\n    if lost >= 1": (
        "interval_s / 2 / between_s\n    if lost + recovery_s / between_s >= 1"
    )
}
