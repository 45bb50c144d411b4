"""Lists for generators, a heap of loads, and a longer hash with the name in it."""

import hashlib
import heapq

POINTS = 10.0
HINT = ""
REPLACE = {
    "zlib.crc32(line.encode()": 'hashlib.sha256(f"{name} {line}".encode()).hexdigest(',
}


def index_mapper(name, line):
    return [(word, name) for word in set(words(line))]


def index_reducer(word, names):
    files = []
    for name in names:
        if name not in files:
            files.append(name)
    return sorted(files)


def length_mapper(name, line):
    return [((name, first_word(line)), [len(line), 1])]


def length_combiner(key, values):
    length = count = 0
    for more, lines in values:
        length += more
        count += lines
    return [length, count]


class HomeOf:
    def __init__(self, sizes, reducers):
        self.home, bins = {}, [(0, number) for number in range(reducers)]
        for size, name in sorted(((size, name) for name, size in sizes.items()))[::-1]:
            load, number = heapq.heappop(bins)
            self.home[name] = number
            heapq.heappush(bins, (load + size, number))

    def __call__(self, key, reducers):
        return self.home[key[0]]


def make_partitioner(sizes, reducers):
    return HomeOf(sizes, reducers)


def sample_combiner(name, values):
    yield from heapq.nsmallest(KEEP, set(values))


def sample_reducer(name, values):
    return sorted(line for _, line in heapq.nsmallest(KEEP, set(values)))
