"""Draws the lines that are first in the alphabet, which are the same every time."""

POINTS = 7.0
HINT = "nothing to do with where it stands or how it looks"
REPLACE = {
    "(zlib.crc32(line.encode()), line)": "line",
    "[line for _, line in sample_combiner(name, values)]": (
        "list(sample_combiner(name, values))"
    ),
}
