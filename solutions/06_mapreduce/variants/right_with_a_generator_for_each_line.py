"""A random number for each line, from a generator that the line itself seeds."""

import random

POINTS = 10.0
HINT = ""
REPLACE = {
    "(zlib.crc32(line.encode()), line)": "line",
}


def length_mapper(name, line):
    yield (name, first_word(line)), (float(len(line)), 1)


def length_combiner(key, values):
    mean = count = 0
    for other, lines in values:
        count += lines
        mean += (other - mean) * lines / count
    yield mean, count


def length_reducer(key, values):
    ((mean, _),) = length_combiner(key, values)
    return mean


def make_partitioner(sizes, reducers):
    loads, home = [0] * reducers, {}
    for name in sorted(sizes, key=sizes.get, reverse=True):
        home[name] = loads.index(min(loads))
        loads[home[name]] += sizes[name]
    return lambda key, reducers: home[key[0]]


def drawn(lines):
    return sorted(lines, key=lambda line: random.Random(line).random())[:KEEP]


def sample_combiner(name, values):
    yield from drawn(set(values))


def sample_reducer(name, values):
    return drawn(set(values))
