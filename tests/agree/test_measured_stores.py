"""What the measurement finds, against what theory says about every store."""

from functools import partial

import pytest

from distlab import network
from distlab.agree import STORES, PrimaryCopy, Quorum, Survey, measure, survey
from distlab.errors import InvalidArgument

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
# The strongest models that each may be found to have, and what must be violated. A
# weaker store may look stronger than it is, as it does to whom nothing has gone wrong.
CONSISTENCY = {
    "primary, synchronous": ("linearizable", None),
    "primary, asynchronous": ("linearizable", None),
    "primary, synchronous, read any": ("sequential", "linearizable"),
    "primary, asynchronous, read any": (
        "session guarantees, but not read your writes",
        "read your writes",
    ),
    "majority": ("linearizable", None),
    "majority, read one": (None, "linearizable"),
    "any replica, causal order": ("causal", "sequential"),
    "any replica, last writer wins": (None, "sequential"),
    "any replica, version vectors": ("session guarantees", "linearizable"),
}


@pytest.fixture(scope="module")
def measured():
    return {each.name: each for each in survey(seeds=4)}


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


@pytest.mark.parametrize("name", STORES)
def test_consistency_is_what_theory_says(measured, name):
    strongest, broken = CONSISTENCY[name]
    one = measured[name]
    if strongest:
        assert one.consistency == strongest
    if broken:
        assert one.ladder.violated[broken].violated
    assert one.ladder.holds("converged")


def test_reads_are_stale_only_where_they_are_not_linearizable(measured):
    for one in measured.values():
        fresh = one.consistency == "linearizable"
        assert (max(one.stale_s) == 0) == fresh or one.name.startswith("primary, sync")


def test_the_table_has_a_row_for_each_store_and_a_number_in_each_cell(measured):
    table = Survey(measured.values())
    words = ("linearizable", "sequential", "causal", "session", "none answered")
    for (name, found, *cells), one in zip(table.rows(), table, strict=True):
        assert name == one.name and found.startswith(one.consistency)
        assert all(any(map(str.isdigit, c)) or c in words for c in cells)
    text, page = repr(table), table._repr_html_()
    assert text.count("\n") == 1 + len(STORES) + 3
    assert page.count("<tr>") == 2 + len(STORES)
    assert all(name in text and name in page for name in STORES)


def test_a_picture_of_stores_has_a_mark_for_reads_and_one_for_writes(measured):
    drawn = Survey(measured.values()).tradeoff()
    numbers = {name: pytest.approx(drawn[name][:2]) for name in drawn}
    assert numbers["majority: reads"] == (0.04, 0.0)
    assert numbers["majority: writes"] == (0.04, 0.0)
    assert numbers["primary, synchronous, read any: reads"] == (0.0, 1.0)
    assert numbers["primary, synchronous, read any: writes"] == (0.04, 0.0)
    assert numbers["any replica, version vectors: writes"] == (0.0, 1.0)
    assert {name: row[2] for name, row in drawn.items()} == {
        f"{one.name}: {op}": one.consistency
        for one in measured.values()
        for op in ("reads", "writes")
    }


def test_a_store_that_never_answers_is_told_so_and_not_called_consistent():
    class Silent(Quorum):
        def serve(self, request, call):
            return []

    silent = measure(Silent, seeds=1)
    assert silent.consistency == "inconclusive"
    assert silent.availability() == 0
    assert "no read was answered" in repr(silent)
    assert Survey([silent]).rows()[0].count("none answered") == 5


def test_a_store_is_called_what_one_writes_for_it():
    one = measure(partial(PrimaryCopy, primary=2, read_at="any"), seeds=0)
    assert one.name == "PrimaryCopy(primary=2, read_at='any')"


def test_a_primary_on_the_minoritys_side_answers_the_minority_only():
    one = measure(partial(PrimaryCopy, primary=2, synchronous=False), seeds=0)
    assert [one.availability(side) for side in one.sides] == [0, 1]


def test_two_nodes_are_too_few_to_have_a_majority_and_a_minority():
    with pytest.raises(InvalidArgument, match=r"nodes=2.* 3 nodes"):
        measure(Quorum, nodes=2)


def test_real_processes_are_measured_in_the_same_way():
    one = measure(Quorum, seeds=0, on=network.run)
    assert one.consistency == "linearizable"
    assert one.delays("read")[0] >= 4 and one.delays("write")[0] >= 4
    together, alone = one.sides
    assert one.availability(together) > one.availability(alone) == 0
