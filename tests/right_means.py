"""A right answer to the means of exercise 06."""


def first_word(line):
    return next(iter(line.split()), "")


def mapper(name, line):
    yield (name, first_word(line)), (len(line), 1)


def combiner(key, values):
    lengths, counts = zip(*values, strict=True)
    return sum(lengths), sum(counts)


def reducer(key, values):
    length, lines = combiner(key, values)
    return length / lines


def make_partitioner(sizes, reducers):
    loads, home = [0] * reducers, {}
    for name in sorted(sizes, key=sizes.get, reverse=True):
        home[name] = loads.index(min(loads))
        loads[home[name]] += sizes[name]
    return lambda key, reducers: home[key[0]]
