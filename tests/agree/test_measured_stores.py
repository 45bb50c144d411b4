"""What the measurement finds, against what theory says about every store."""

import pytest

from distlab.agree import STORES, survey

# What theory says of three nodes, of which the last is cut off, and the first is the
# primary. Delays: of a read and of a write, least and most, without a split and in it.
# Shares of reads and writes answered on the majority's and the minority's side.
EVERYONE, NOBODY = (1, 1), (0, 0)
READERS = (1, 0)
AT_ONCE = [(0, 0)] * 4
THEORY = {
    "primary, synchronous": [(0, 2), (2, 4), (0, 2), None, READERS, NOBODY],
    "primary, asynchronous": [(0, 2)] * 4 + [EVERYONE, NOBODY],
    "primary, synchronous, read any": [(0, 0), (2, 4), (0, 0), None, READERS, READERS],
    "primary, asynchronous, read any": [(0, 0), (0, 2)] * 2 + [EVERYONE, READERS],
    "majority": [(4, 4)] * 4 + [EVERYONE, NOBODY],
    "majority, read one": [(0, 0), (4, 4)] * 2 + [EVERYONE, READERS],
    "any replica, causal order": [*AT_ONCE, EVERYONE, EVERYONE],
    "any replica, last writer wins": [*AT_ONCE, EVERYONE, EVERYONE],
    "any replica, version vectors": [*AT_ONCE, EVERYONE, EVERYONE],
}
CONSISTENT = {
    "primary, synchronous": "linearizable",
    "primary, asynchronous": "linearizable",
    "majority": "linearizable",
}


@pytest.fixture(scope="module")
def measured():
    return {each.name: each for each in survey()}


def least_and_most(one, op, split):
    delays = one.delays(op, split=split)
    return (delays[0], delays[-1]) if delays else None


def shares(one, side):
    return tuple(one.availability_of(side).values())


@pytest.mark.parametrize("name", STORES)
def test_latency_and_availability_are_what_theory_says(measured, name):
    one = measured[name]
    found = [
        least_and_most(one, op, split)
        for split in (False, True)
        for op in ("read", "write")
    ]
    found += [shares(one, side) for side in one.sides]
    assert found == THEORY[name]
