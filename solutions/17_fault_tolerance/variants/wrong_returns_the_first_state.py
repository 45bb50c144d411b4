"""Trains one step less than it should."""

POINTS = 3.0
HINT = "after exactly job.steps steps"
REPLACE = {
    """    state = load(comm, disk, job)
    while state["step"] < job.steps:
""": """    state = load(comm, disk, job)
    while state["step"] < job.steps - 1:
""",
}
