"""Divides the budget by all elements, and forgets that short buckets send one."""

POINTS = 7.0
HINT = "a short bucket sends one element"


def density_within(budget_bytes, steps, lengths, world_size):
    return budget_bytes / steps / (world_size - 1) / 4 / sum(lengths)
