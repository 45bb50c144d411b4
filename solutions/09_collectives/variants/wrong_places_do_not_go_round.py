"""Counts from the root, and forgets the modulo where it names a partner."""

POINTS = 6.0
HINT = "Places go round"
REPLACE = {
    ", (rank + distance) % n)": ", rank + distance)",
    ", (rank - distance) % n)": ", rank - distance)",
}
