"""A random number for each line, from a generator that it seeds; lists of files."""

import random

POINTS = 10.0
HINT = ""
REPLACE = {"(zlib.crc32(line.encode()), line)": "line"}


def index_mapper(name, line):
    return ((word, name) for word in words(line))


def index_reducer(word, names):
    yield sorted({name: None for name in names})


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
    files = [[] for _ in range(reducers)]
    for name in sorted(sizes, key=lambda name: -sizes[name]):
        min(files, key=lambda own: sum(map(sizes.get, own))).append(name)
    return lambda key, n: next(i for i, own in enumerate(files) if key[0] in own)


def sample_combiner(name, values):
    yield from sample_reducer(name, values)


def sample_reducer(name, values):
    return sorted(set(values), key=lambda line: random.Random(line).random())[:KEEP]
