"""The combiner counts a value that stands for several lines as one."""

POINTS = 7.0
HINT = "stands for several lines"
REPLACE = {
    "length, count = length_combiner(key, values)": (
        "lengths, counts = zip(*values)\n    length, count = sum(lengths), sum(counts)"
    ),
}


def length_combiner(key, values):
    lengths = [length for length, _ in values]
    return sum(lengths), len(lengths)
