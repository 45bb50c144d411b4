"""Chooses a density of 0.1 %, whatever the budget is."""

POINTS = 7.0
HINT = "learns too little"


def density_within(budget_bytes, steps, lengths, world_size):
    return 0.001
