"""The combiner is the reducer, so that means are averaged."""

POINTS = 7.0
HINT = "A mean of means is not the mean"


def length_mapper(name, line):
    yield (name, first_word(line)), len(line)


def length_combiner(key, values):
    lengths = list(values)
    return sum(lengths) / len(lengths)


length_reducer = length_combiner
