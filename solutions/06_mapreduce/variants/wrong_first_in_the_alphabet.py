"""Draws the lines that are first in the alphabet, which are the same every time."""

POINTS = 7.0
HINT = "nothing to do with where it stands or how it looks"
REPLACE = {
    "(zlib.crc32(line.encode()), line)": "line",
}


def sample_reducer(name, values):
    return sorted(set(values))[:KEEP]
