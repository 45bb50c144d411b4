"""Of equal losses prefers the one that was reported first."""

POINTS = 0.0
HINT = "the lower trial first"
REPLACE = {
    "key=lambda trial: (losses[trial], trial)": "key=lambda trial: losses[trial]",
}
