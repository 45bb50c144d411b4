"""Lists for generators, a heap of loads in a class, and a longer hash with the name."""

import hashlib
import heapq

POINTS = 10.0
HINT = ""
REPLACE = {
    "zlib.crc32(line.encode()": 'hashlib.sha256(f"{name} {line}".encode()).hexdigest(',
}


def index_mapper(name, line):
    return [(word, name) for word in set(words(line))]


def length_mapper(name, line):
    return [((name, first_word(line)), [len(line), 1])]


def length_combiner(key, values):
    return [sum(column) for column in zip(*values, strict=True)]


class HomeOf:
    def __init__(self, sizes, reducers):
        self.home, loads = {}, [(0, number) for number in range(reducers)]
        for size, name in sorted(((size, name) for name, size in sizes.items()))[::-1]:
            load, self.home[name] = loads[0]
            heapq.heapreplace(loads, (load + size, self.home[name]))

    def __call__(self, key, reducers):
        return self.home[key[0]]


def make_partitioner(sizes, reducers):
    return HomeOf(sizes, reducers)


def sample_reducer(name, values):
    return sorted(line for _, line in heapq.nsmallest(KEEP, set(values)))
