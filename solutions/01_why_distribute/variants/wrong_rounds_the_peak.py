"""Takes the whole number that is nearest to the root."""

POINTS = 7.0
HINT = "on both sides of the root"
REPLACE = {"return sigma, kappa, peak": "return sigma, kappa, max(1, round(root))"}
