"""The combiner is the reducer, so that means are averaged."""

POINTS = 7.0
HINT = "A mean of means is not the mean"


def index_mapper(name, line):
    for word in words(line):
        yield word, name


def index_reducer(word, names):
    return sorted(set(names))


def length_mapper(name, line):
    yield (name, first_word(line)), len(line)


def length_combiner(key, values):
    lengths = list(values)
    return sum(lengths) / len(lengths)


length_reducer = length_combiner


def make_partitioner(sizes, reducers):
    loads, home = [0] * reducers, {}
    for name in sorted(sizes, key=sizes.get, reverse=True):
        home[name] = loads.index(min(loads))
        loads[home[name]] += sizes[name]
    return lambda key, reducers: home[key[0]]


def sample_mapper(name, line):
    if line.strip():
        yield name, (zlib.crc32(line.encode()), line)


def sample_combiner(name, values):
    yield from sorted(set(values))[:KEEP]


def sample_reducer(name, values):
    return [line for _, line in sample_combiner(name, values)]
