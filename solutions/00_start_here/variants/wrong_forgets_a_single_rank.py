"""Right for two ranks and more; a single one sends to itself."""

POINTS = 6.0
HINT = "a single rank is both"
REPLACE = {
    "0 and n > 1": "0",
    "1 and n > 1": "1",
}
