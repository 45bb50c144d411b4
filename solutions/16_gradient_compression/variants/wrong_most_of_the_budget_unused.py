"""Chooses a density of 0.1 %, whatever the budget is."""

POINTS = 7.0
HINT = "More elements fit into the budget"


def density_within(budget_bytes, steps, lengths, world_size):
    return 0.001
