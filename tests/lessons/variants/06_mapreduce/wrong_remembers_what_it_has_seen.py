"""Gives a line once for each process, also if its task is tried again."""

POINTS = 7.0
HINT = "What a function remembered from the first time is still there"


def index_mapper(name, line):
    for word in words(line):
        yield word, name


def index_reducer(word, names):
    return sorted(set(names))


def length_mapper(name, line):
    yield (name, first_word(line)), (len(line), 1)


def length_combiner(key, values):
    lengths, counts = zip(*values, strict=True)
    return sum(lengths), sum(counts)


def length_reducer(key, values):
    length, count = length_combiner(key, values)
    return length / count


def make_partitioner(sizes, reducers):
    loads, home = [0] * reducers, {}
    for name in sorted(sizes, key=sizes.get, reverse=True):
        home[name] = loads.index(min(loads))
        loads[home[name]] += sizes[name]
    return lambda key, reducers: home[key[0]]


SEEN = set()


def sample_mapper(name, line):
    if line.strip() and (name, line) not in SEEN:
        SEEN.add((name, line))
        yield name, (zlib.crc32(line.encode()), line)


def sample_combiner(name, values):
    yield from sorted(set(values))[:KEEP]


def sample_reducer(name, values):
    return [line for _, line in sample_combiner(name, values)]
