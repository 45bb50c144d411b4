"""The combiner counts a value that stands for several lines as one."""

POINTS = 7.0
HINT = "stands for several lines"


def index_mapper(name, line):
    for word in words(line):
        yield word, name


def index_reducer(word, names):
    return sorted(set(names))


def length_mapper(name, line):
    yield (name, first_word(line)), (len(line), 1)


def length_combiner(key, values):
    lengths = [length for length, _ in values]
    return sum(lengths), len(lengths)


def length_reducer(key, values):
    lengths, counts = zip(*values, strict=True)
    length, count = sum(lengths), sum(counts)
    return length / count


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
