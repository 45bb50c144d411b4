"""What survives which two failures, against a count machine by machine."""

from itertools import combinations, product

import pytest

from distlab.agree.failure_domains import KINDS, Datacenter, Machine, survival
from distlab.errors import InvalidArgument

MEMBERS = {  # machines (zone, row, rack, place) that fail with one of them
    "machine": lambda m, o: m == o,
    "rack": lambda m, o: m[:3] == o[:3],
    "row": lambda m, o: m[:2] == o[:2],
    "zone": lambda m, o: m[0] == o[0],
    "power": lambda m, o: (m[0], m[2]) == (o[0], o[2]),
}


def counted(machines, placement, one, other):
    """Count with sets of dead machines, each pair of such sets once."""
    dead = {
        kind: {frozenset(o for o in machines if MEMBERS[kind](m, o)) for m in machines}
        for kind in (one, other)
    }
    pairs = product(dead[one], dead[other])
    if one == other:
        pairs = combinations(dead[one], 2)
    left = [len(set(placement) - a - b) for a, b in pairs]
    return len(left), sum(map(bool, left)), sum(n > len(placement) / 2 for n in left)


@pytest.mark.parametrize("copies", [1, 3, 4])
def test_every_pair_of_failures_is_counted_once_with_what_it_leaves(copies):
    center = Datacenter(2, 2, 3, 2)
    for placement in (center[:copies], center[3 : 3 + copies], center[::5][:copies]):
        for (one, other), counts in survival(center, placement).items():
            assert counts == counted(center, placement, one, other), (one, other)


def test_three_copies_survive_two_failures_for_reads_and_five_for_a_quorum():
    center = Datacenter()
    pairs, readable, quorate = survival(center, center.apart("zone"))["zone", "zone"]
    assert (pairs, readable, quorate) == (3, 3, 0)
    pairs, readable, quorate = survival(center, center[:3])["machine", "machine"]
    assert (pairs - readable, pairs - quorate) == (0, 3)
    center = Datacenter(5, 1, 1, 2)
    counts = survival(center, center.apart("zone", copies=5))
    assert all(pairs == quorate for pairs, _, quorate in counts.values())
    assert repr(counts).count("\n") == counts._repr_html_().count("<tr") == 16


def test_hdfs_puts_one_copy_with_the_writer_and_two_into_one_other_rack():
    center = Datacenter()
    for writer in center:
        first, second, third = center.hdfs(writer)
        assert first == writer
        assert second[:3] == third[:3] != writer[:3]
        assert second != third
    counts = survival(center, center.hdfs())
    assert counts["rack", "rack"] == (153, 152, 136)


@pytest.mark.parametrize("kind", KINDS)
def test_copies_apart_survive_two_failures_of_that_kind(kind):
    center = Datacenter()
    placement = center.apart(kind)
    assert len({machine.domain(kind) for machine in placement}) == 3
    pairs, readable, _ = survival(center, placement)[kind, kind]
    assert pairs == readable
    with pytest.raises(InvalidArgument, match="copies=73"):
        center.apart(kind, copies=73)


def test_what_is_no_data_center_or_placement_is_named():
    with pytest.raises(InvalidArgument, match="racks=0"):
        Datacenter(racks=0)
    with pytest.raises(InvalidArgument, match="2 machines or more"):
        Datacenter(2, 1, 1, 1).hdfs()
    with pytest.raises(InvalidArgument, match="'disk'"):
        Datacenter().apart("disk")
    for wrong in ((), (Machine(0, 0, 0, 0),) * 2, (Machine(9, 0, 0, 0),)):
        with pytest.raises(InvalidArgument, match="distinct machines"):
            survival(Datacenter(), wrong)
