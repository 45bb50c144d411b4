"""Wrong combiners and partitioners each meet the hint that fits, and none passes."""

import random
import zlib
from itertools import count
from pathlib import Path

import pytest
from right_means import combiner, first_word, make_partitioner, mapper, reducer

from distlab.grading import MeanLengths

CASE = [120, 30, 60, 10], 2


def judged(case=CASE, **wrong):
    right = {"mapper": mapper, "reducer": reducer, "combiner": combiner}
    right["make_partitioner"] = make_partitioner
    return MeanLengths(list((right | wrong).values()), *case).judge()


def mapped(make):
    """Return a mapper of one pair, made of name, word and line."""
    return lambda name, line: [make(name, first_word(line), line)]


def plain(name, line):
    yield (name, first_word(line)), len(line)


def mean(key, values):
    lengths = list(values)
    return sum(lengths) / len(lengths)


def flat(key, values):
    lengths = [x for v in values for x in (v if isinstance(v, list) else [v])]
    return lengths


def mean_of_flat(key, values):
    return mean(key, flat(key, values))


def each(key, values):
    yield from values


def none(key, values):
    return None


def with_the_key(key, values):
    yield key, combiner(key, values)


def two_passes(key, values):
    return sum(length for length, _ in values), sum(lines for _, lines in values)


def by_their_length(key, values):
    return sum(length for length, _ in values) / len(values)


def values_for_lines(key, values):
    lengths = [length for length, _ in values]
    return sum(lengths), len(lengths)


def only_the_first(key, values):
    return next(iter(values))


def by_lengths(key, values):
    lengths = list(values)
    return sum(lengths), len(lengths)


def skips_blanks(name, line):
    if line.strip():
        yield from mapper(name, line)


FUNCTIONS = {
    "mean of means": (
        {"mapper": plain, "reducer": mean, "combiner": mean},
        "A mean of means is not the mean",
    ),
    "values for lines": ({"combiner": values_for_lines}, "stands for several lines"),
    "all go on": ({"combiner": each}, "All that the mapper gave was sent"),
    "a long value": (
        {"mapper": plain, "reducer": mean_of_flat, "combiner": flat},
        "Two numbers are enough",
    ),
    "another kind": (
        {"mapper": plain, "reducer": mean, "combiner": by_lengths},
        "The reducer meets two kinds of values",
    ),
    "another kind again": (
        {"mapper": plain, "reducer": lambda k, v: 1.0, "combiner": combiner},
        "divide",
    ),
    "the first only": ({"combiner": only_the_first}, "A mean of means"),
    "nothing": ({"combiner": none}, "The combiner returned None"),
    "the key, too": ({"combiner": with_the_key}, "without the key"),
    "two passes": ({"combiner": two_passes}, "can be gone through once"),
    "a length": ({"reducer": by_their_length}, "can be gone through once"),
    "the last part of the name": (
        {"mapper": mapped(lambda n, w, line: ((Path(n).name, w), (len(line), 1)))},
        "the one that the mapper is given",
    ),
    "no mean": ({"reducer": combiner}, "divides at the end"),
    "a sum": ({"reducer": lambda k, v: combiner(k, v)[0]}, "the sum of the lengths"),
    "a count": ({"reducer": lambda k, v: combiner(k, v)[1]}, "how many lines"),
    "rounded": ({"reducer": lambda k, v: reducer(k, v) // 1}, "no whole number"),
    "no blanks": ({"mapper": skips_blanks}, "A blank line begins with no word"),
    "stripped": (
        {"mapper": mapped(lambda n, w, line: ((n, w), (len(line.strip()), 1)))},
        "as it stands",
    ),
    "name only": (
        {"mapper": mapped(lambda n, w, line: (n, (len(line), 1)))},
        "the file's name and the line's first word",
    ),
    "swapped": (
        {"mapper": mapped(lambda n, w, line: ((w, n), (len(line), 1)))},
        "in this order",
    ),
}


@pytest.mark.parametrize("wrong", FUNCTIONS)
def test_wrong_functions_meet_their_hint(wrong):
    functions, hint = FUNCTIONS[wrong]
    case = ([2000], 2) if wrong == "a long value" else CASE
    verdict = judged(case, **functions)
    assert verdict.outcome == "fail", verdict
    assert hint in verdict.hint, verdict


# ---- partitioners ---------------------------------------------------------------


def as_they_come(sizes, reducers):
    """Give a file its number when it is first seen, in each process on its own."""
    numbers, home = count(), {}

    def partitioner(key, reducers):
        if key[0] not in home:
            home[key[0]] = next(numbers) % reducers
        return home[key[0]]

    return partitioner


def in_order(sizes, reducers):
    loads, home = [0] * reducers, {}
    for name in sizes:
        home[name] = loads.index(min(loads))
        loads[home[name]] += sizes[name]
    return lambda key, reducers: home[key[0]]


def unwritten(sizes, reducers):
    raise NotImplementedError("write this step")


def always(partition):
    """Return what makes this partitioner, whatever the sizes."""
    return lambda sizes, reducers: partition


def by_bytes(text):
    return zlib.crc32(text.encode())


def with_floats(sizes, reducers):
    return lambda key, reducers: float(make_partitioner(sizes, reducers)(key, reducers))


def by_whole_key(sizes, reducers):
    return lambda key, reducers: dict.fromkeys(sizes, 0)[key]


TWO_LARGE = [100, 100, 10], 2
LARGE_LAST = [40, 40, 40, 40, 160], 2
PARTITIONERS = {
    "hash": (always(lambda k, n: hash(k[0]) % n), CASE, "every Python"),
    "hash of the key": (always(lambda k, n: hash(k) % n), CASE, "every Python"),
    "at random": (always(lambda k, n: random.randrange(n)), CASE, "at nothing else"),
    "as they come": (as_they_come, ([60, 60, 60, 60, 60], 3), "at nothing else"),
    "whole key": (always(lambda k, n: by_bytes(str(k)) % n), CASE, "open one part"),
    "all to one": (always(lambda k, n: 0), CASE, "One reducer gets everything"),
    "by name": (always(lambda k, n: by_bytes(k[0]) % n), TWO_LARGE, "Large files meet"),
    "in order": (in_order, LARGE_LAST, "which file do you place first"),
    "from one on": (always(lambda k, n: by_bytes(k[0]) % n + 1), CASE, "from 0 on"),
    "a float": (with_floats, CASE, "is an int"),
    "no such key": (by_whole_key, CASE, "given the whole key"),
    "no number": (always(lambda k, n: k[0]), CASE, "from 0 on"),
    "no function": (always(None), CASE, "has to be a function"),
    "one argument": (always(lambda k: 0), CASE, "has to be a function"),
    "unwritten": (unwritten, CASE, "Nothing of your own is written yet"),
}


@pytest.mark.parametrize("wrong", PARTITIONERS)
def test_a_wrong_partitioner_meets_its_hint(wrong):
    make, case, hint = PARTITIONERS[wrong]
    verdict = judged(case, make_partitioner=make)
    assert verdict.outcome == "fail", verdict
    assert hint in verdict.hint, verdict


@pytest.mark.parametrize("case", [([2000, 3], 2), ([50, 0, 20], 4), LARGE_LAST])
def test_right_functions_pass(case):
    assert judged(case).outcome == "pass"


def test_a_mean_with_rounding_of_its_own_passes():
    def running(key, values):
        value = lines = 0
        for other, more in values:
            lines += more
            value += (other - value) * more / lines
        return value, lines

    def last(key, values):
        return running(key, values)[0]

    assert judged(combiner=running, reducer=last).outcome == "pass"
