"""Makes one step too few in the reduce-scatter phase, none in a ring of two."""

POINTS = 0.0
HINT = "Do you stop early, or skip one?"
REPLACE = {
    """range(n - 1):
        comm.mark(f"reduce-scatter""": """range(n - 2):
        comm.mark(f"reduce-scatter"""
}
