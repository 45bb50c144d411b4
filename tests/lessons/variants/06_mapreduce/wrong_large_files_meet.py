"""Places files by a hash that is the same everywhere."""

POINTS = 7.0
HINT = "Large files meet in one reducer"


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
    return lambda key, reducers: zlib.crc32(key[0].encode()) % reducers


def sample_mapper(name, line):
    if line.strip():
        yield name, (zlib.crc32(line.encode()), line)


def sample_combiner(name, values):
    yield from sorted(set(values))[:KEEP]


def sample_reducer(name, values):
    return [line for _, line in sample_combiner(name, values)]
