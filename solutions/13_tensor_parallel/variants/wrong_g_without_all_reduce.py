"""Never sums the partial outputs."""

POINTS = 0.0
HINT = "Which operator sums in forward"
REPLACE = {"return summed(comm, partial)": "return partial"}
