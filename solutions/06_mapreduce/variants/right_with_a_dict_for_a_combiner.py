"""Draws by the number of each line in a dict, and places files in lists."""

POINTS = 10.0
HINT = ""
REPLACE = {
    "crc32(line.encode())": "adler32(line[::-1].encode()) * 2654435761 % 2**32",
}


def index_mapper(name, line):
    return ((word, name) for word in words(line))


def index_reducer(word, names):
    yield sorted({name: None for name in names})


def make_partitioner(sizes, reducers):
    shares = [[] for _ in range(reducers)]
    for name in sorted(sizes, key=lambda name: -sizes[name]):
        min(shares, key=lambda share: sum(map(sizes.get, share))).append(name)

    def partitioner(key, reducers):
        return next(number for number, share in enumerate(shares) if key[0] in share)

    return partitioner


def numbers_of(values):
    found = {}
    for number, line in values:
        found[line] = number
    return sorted(found, key=lambda line: (found[line], line))[:KEEP], found


def sample_combiner(name, values):
    lines, found = numbers_of(values)
    for line in lines:
        yield found[line], line


def sample_reducer(name, values):
    return numbers_of(values)[0]
