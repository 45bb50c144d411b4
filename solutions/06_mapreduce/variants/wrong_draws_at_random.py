"""Draws with the process's own random numbers."""

import random

POINTS = 7.0
HINT = "the same in every Python"
REPLACE = {
    "(zlib.crc32(line.encode()), line)": "line",
}


def sample_combiner(name, values):
    yield from sample_reducer(name, values)


def sample_reducer(name, values):
    lines = sorted(set(values))
    return random.sample(lines, min(KEEP, len(lines)))
