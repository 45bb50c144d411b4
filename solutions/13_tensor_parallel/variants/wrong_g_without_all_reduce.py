"""Never sums the partial outputs."""

POINTS = 3.0
HINT = "Each rank returns its own partial output"
REPLACE = {"return summed(comm, partial)": "return partial"}
