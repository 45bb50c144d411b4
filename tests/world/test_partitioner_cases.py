"""The cases that the exercise shows tell who has looked at the sizes of the files."""

import zlib

import pytest
from right_means import combiner, make_partitioner, mapper, reducer

from distlab.grading import MeanLengths


def judged(case, make):
    return MeanLengths([mapper, reducer, combiner, make], *case).judge()


def in_order(sizes, reducers):
    loads, home = [0] * reducers, {}
    for name in sizes:
        home[name] = loads.index(min(loads))
        loads[home[name]] += sizes[name]
    return lambda key, reducers: home[key[0]]


def dealt(order):
    """Return what deals files out to the reducers in turn, in this order."""

    def make(sizes, reducers):
        home = {n: i % reducers for i, n in enumerate(sorted(sizes, key=order(sizes)))}
        return lambda key, reducers: home[key[0]]

    return make


def smallest_first(sizes, reducers):
    return in_order(dict(sorted(sizes.items(), key=lambda item: item[1])), reducers)


def by_count(sizes, reducers):
    files, home = [0] * reducers, {}
    for name in sizes:
        home[name] = files.index(min(files))
        files[home[name]] += 1
    return lambda key, reducers: home[key[0]]


def largest_alone(sizes, reducers):
    largest = max(sizes, key=sizes.get)
    return lambda key, reducers: 0 if key[0] == largest else 1


def by_name(sizes, reducers):
    return lambda key, reducers: zlib.crc32(key[0].encode()) % reducers


SEVEN = [10, 60, 10, 90, 60, 10, 80], 3  # the two cases that the exercise shows
FOUR = [100, 1000, 1100, 2100], 2
BLIND = {
    "crc32 of the name": by_name,
    "dealt by name": dealt(lambda sizes: None),
    "dealt by size": dealt(lambda sizes: sizes.get),
    "dealt from the largest on": dealt(lambda sizes: lambda name: -sizes[name]),
    "in order": in_order,
    "smallest first": smallest_first,
    "by count": by_count,
    "largest alone": largest_alone,
}


@pytest.mark.parametrize("blind", BLIND)
def test_who_does_not_look_at_the_sizes_well_fails_in_a_case_that_is_shown(blind):
    verdict = judged(SEVEN, BLIND[blind])
    assert verdict.outcome == "fail", verdict
    assert "Large files meet" in verdict.hint, verdict


def first_fit(sizes, reducers):
    room = [max(sum(sizes.values()) / reducers, max(sizes.values())) * 4 / 3] * reducers
    home = {}
    for name in sorted(sizes, key=sizes.get, reverse=True):
        home[name] = next(i for i, free in enumerate(room) if free >= sizes[name])
        room[home[name]] -= sizes[name]
    return lambda key, reducers: home[key[0]]


@pytest.mark.parametrize("case", [SEVEN, FOUR])
@pytest.mark.parametrize("make", [make_partitioner, first_fit])
def test_a_right_partitioner_passes_the_cases_that_are_shown(case, make):
    assert judged(case, make).outcome == "pass"
