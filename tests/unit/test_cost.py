"""The formulas of cost, against the literature's, bounds and counting by hand."""

import heapq
import inspect
import math
from collections import Counter

import pytest

from distlab import InvalidArgument, collectives, cost
from distlab.cost import two_trees
from distlab.cost.multi_ring import ring_order
from distlab.links import LINKS, Link

NAMES = [name for name in collectives.__all__ if "_" in name]
OPTIONS = "root", "ranks_per_node", "pieces_per_chunk", "chunks_per_half", "channels"
POWERS = [1, 2, 4, 8, 16, 64]
ANY = [1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 33, 100]
S = 64 * 16 * 8  # bytes that every power here divides, twice


def of(name, n, size=S, **options):
    """Return the cost of any algorithm."""
    if "hierarchical" in name:
        options.setdefault("ranks_per_node", 2)
    return getattr(cost, name)(n, size, **options)


# For powers of two: rounds, bytes on the chain, added bytes, each of n and the bytes
# that a rank passes in, where k is log2 n. As in the tables of Thakur, Rabenseifner and
# Gropp (2005).
LITERATURE = {
    "naive_broadcast": lambda n, k: (n - 1, (n - 1) * S, 0),
    "tree_broadcast": lambda n, k: (k, k * S, 0),
    "scatter_all_gather_broadcast": lambda n, k: (k + n - 1, 2 * (n - 1) / n * S, 0),
    "naive_reduce": lambda n, k: (n - 1, (n - 1) * S, (n - 1) * S),
    "tree_reduce": lambda n, k: (k, k * S, k * S),
    "naive_all_reduce": lambda n, k: (2 * (n - 1), 2 * (n - 1) * S, (n - 1) * S),
    "tree_all_reduce": lambda n, k: (2 * k, 2 * k * S, k * S),
    "ring_all_reduce": lambda n, k: (
        2 * (n - 1),
        2 * (n - 1) / n * S,
        (n - 1) / n * S,
    ),
    "multi_ring_all_reduce": lambda n, k: (
        2 * (n - 1),
        2 * (n - 1) / n * S,
        (n - 1) / n * S,
    ),
    "pipelined_ring_all_reduce": lambda n, k: (4 * (n - 1), 2 * (n - 1) / n * S, 0),
    "recursive_doubling_all_reduce": lambda n, k: (k, k * S, k * S),
    "halving_doubling_all_reduce": lambda n, k: (
        2 * k,
        2 * (n - 1) / n * S,
        (n - 1) / n * S,
    ),
    "double_tree_all_reduce": lambda n, k: (
        2 * (2 * k - (n > 1)),
        (2 * k - (n > 1)) * S,
        (k - (n > 1) / 2) * S,
    ),
    "naive_gather": lambda n, k: (n - 1, (n - 1) * S, 0),
    "tree_gather": lambda n, k: (k, (n - 1) * S, 0),
    "naive_scatter": lambda n, k: (n - 1, (n - 1) * S, 0),
    "tree_scatter": lambda n, k: (k, (n - 1) * S, 0),
    "ring_all_gather": lambda n, k: (n - 1, (n - 1) * S, 0),
    "recursive_doubling_all_gather": lambda n, k: (k, (n - 1) * S, 0),
    "bruck_all_gather": lambda n, k: (k, (n - 1) * S, 0),
    "bruck_reduce_scatter": lambda n, k: (k, (n - 1) / n * S, (n - 1) / n * S),
    "ring_reduce_scatter": lambda n, k: (n - 1, (n - 1) / n * S, (n - 1) / n * S),
    "pairwise_reduce_scatter": lambda n, k: (n - 1, (n - 1) / n * S, (n - 1) / n * S),
    "recursive_halving_reduce_scatter": lambda n, k: (
        k,
        (n - 1) / n * S,
        (n - 1) / n * S,
    ),
    "pairwise_all_to_all": lambda n, k: (n - 1, (n - 1) * S, 0),
    "bruck_all_to_all": lambda n, k: (k, k * n / 2 * S, 0),
    "naive_barrier": lambda n, k: (2 * (n - 1), 0, 0),
    "tree_barrier": lambda n, k: (2 * k, 0, 0),
    "dissemination_barrier": lambda n, k: (k, 0, 0),
}


@pytest.mark.parametrize("n", POWERS)
@pytest.mark.parametrize("name", LITERATURE)
def test_formulas_are_the_literatures_for_powers_of_two(name, n):
    found = of(name, n)
    expected = LITERATURE[name](n, n.bit_length() - 1)
    assert (found.rounds, found.chain_bytes, found.added_bytes) == expected


@pytest.mark.parametrize("nodes", [1, 2, 3, 8])
@pytest.mark.parametrize("g", [1, 2, 4, 8])
def test_a_hierarchy_of_full_nodes_moves_what_a_ring_does_in_fewer_rounds(g, nodes):
    n, size = g * nodes, 3 * S
    found = cost.hierarchical_all_reduce(n, size, ranks_per_node=g)
    assert found.rounds == 2 * (g - 1) + 2 * (nodes - 1)
    assert found.sent_bytes == cost.ring_all_reduce(n, size).sent_bytes
    assert found.chain_bytes == 2 * (n - 1) / n * size == 2 * found.added_bytes


def test_nodes_that_the_ranks_do_not_fill_are_cut_to_equal_ones():
    for n, nominal, actual in ((20, 8, 4), (9, 6, 3), (31, 8, 1), (6, 8, 6)):
        found = cost.hierarchical_all_reduce(n, S, ranks_per_node=nominal)
        assert found == cost.hierarchical_all_reduce(n, S, ranks_per_node=actual)
        assert found.rounds == 2 * (actual - 1) + 2 * (n // actual - 1)


def test_every_algorithm_has_a_cost_and_its_options():
    for name in NAMES:
        algorithm = inspect.signature(getattr(collectives, name)).parameters
        formula = inspect.signature(getattr(cost, name)).parameters
        for option in (*OPTIONS, "nearest_first"):
            assert (option in algorithm) == (option in formula), name
        assert "T = " in getattr(cost, name).__doc__, name


@pytest.mark.parametrize("n", ANY)
@pytest.mark.parametrize("name", NAMES)
def test_nothing_beats_the_bounds(name, n):
    (kind,) = [c for c in BOUNDS if name in collectives.variants(c)]
    for numbers in (0, 1, 5, 100, 1001):
        found = of(name, n, 8 * numbers, itemsize=8)
        least = BOUNDS[kind](n, 8 * numbers)
        assert len(found.sent_bytes) == len(found.messages) == n
        assert found.rounds >= cost.bound_rounds(n)
        assert max(found.chain_bytes, found.busiest_bytes) >= least
        assert all(each % 8 == 0 for each in found.sent_bytes)
        if n == 1:
            assert found == cost.Cost(0, 0, 0, (0,), (0,))


BOUNDS = {
    "broadcast": cost.broadcast_bound_bytes,
    "reduce": cost.reduce_bound_bytes,
    "all_reduce": cost.all_reduce_bound_bytes,
    "gather": cost.gather_bound_bytes,
    "all_gather": cost.all_gather_bound_bytes,
    "scatter": cost.scatter_bound_bytes,
    "reduce_scatter": cost.reduce_scatter_bound_bytes,
    "all_to_all": cost.all_to_all_bound_bytes,
    "barrier": cost.barrier_bound_bytes,
}


def test_the_ring_of_ten_numbers_on_four_ranks_as_counted_by_hand():
    found = cost.ring_all_reduce(4, 40, itemsize=4)  # chunks of 12, 12, 8 and 8 bytes
    assert found.sent_bytes == (60, 64, 60, 56)
    assert found.messages == (6, 6, 6, 6) and found.busiest_bytes == 64
    assert (found.rounds, found.chain_bytes, found.added_bytes) == (6, 72, 36)


def test_five_ranks_as_drawn_on_paper():
    tree = cost.tree_all_reduce(5, 10)  # 0 has children 1, 2, 4; 2 has 3
    assert tree.messages == (3, 1, 2, 1, 1)
    scattered = cost.tree_scatter(
        5, 10, root=3
    )  # places 0 to 4 are ranks 3, 4, 0, 1, 2
    assert scattered.sent_bytes == (10, 0, 0, 40, 0)
    assert scattered.messages == (1, 0, 0, 3, 0)
    paired = cost.recursive_doubling_all_reduce(5, 10)  # 1 is the guest of 0
    assert paired.messages == (3, 1, 2, 2, 2) and paired.rounds == 4
    trees = cost.double_tree_all_reduce(5, 20)
    # labels 1 to 5, then 5 1 2 3 4: inner ranks are 1 and 3 (root), then 2 and 4 (root)
    assert trees.messages == (2, 4, 4, 3, 3)
    assert trees.sent_bytes == (20, 40, 40, 30, 30)
    bruck = cost.bruck_all_to_all(5, 10)  # ways 1, 3; 2, 3; 4
    assert bruck.sent_bytes == (50,) * 5 and bruck.rounds == 3


def test_unequal_tensors_of_three_ranks_as_counted_by_hand():
    rows = [[8, 16, 0], [24, 0, 8], [0, 40, 8]]
    found = cost.pairwise_all_to_all(3, rows, itemsize=8)
    assert (found.sent_bytes, found.messages) == ((16, 32, 40), (2, 2, 2))
    assert (found.rounds, found.chain_bytes) == (2, 16 + 40)  # 16, 8, 0; 0, 24, 40
    equal = cost.pairwise_all_to_all(3, [[8] * 3] * 3)
    assert equal == cost.pairwise_all_to_all(3, 8)
    for wrong in (rows[:2], [[8, 8]] * 3, [[4] * 3] * 3, []):
        with pytest.raises(InvalidArgument):
            cost.pairwise_all_to_all(3, wrong, itemsize=8)


def test_pieces_change_nothing_but_messages_and_rounds():
    ring = cost.ring_all_reduce(4, 41)
    for pieces in (2, 3, 8):
        found = cost.pipelined_ring_all_reduce(4, 41, pieces_per_chunk=pieces)
        assert found.messages == (6 * pieces,) * 4 and found.rounds == 6 * pieces
        assert found.sent_bytes == ring.sent_bytes
        assert found.chain_bytes == ring.chain_bytes
    with pytest.raises(InvalidArgument, match="pieces"):
        cost.pipelined_ring_all_reduce(4, 41, pieces_per_chunk=1)


def test_two_rings_of_ten_numbers_on_four_ranks_as_counted_by_hand():
    found = cost.multi_ring_all_reduce(4, 40, itemsize=4, channels=2)
    # 5 numbers on each ring, in chunks of 2, 1, 1, 1; places 0, 1, 2, 3 send 8, 8, 8, 6
    # of them; the first ring is 0 1 2 3, the second 1 0 3 2
    assert found.sent_bytes == (64, 64, 56, 56)
    assert (found.rounds, found.chain_bytes, found.messages) == (6, 96, (12,) * 4)
    with pytest.raises(InvalidArgument, match="channels is a whole number from 1 up"):
        cost.multi_ring_all_reduce(4, 40, channels=0)


def test_two_trees_are_as_deep_as_counted_by_hand():
    for n, deep in ((2, 1), (3, 2), (4, 3), (5, 3), (6, 4), (7, 4), (8, 5), (15, 6)):
        found = cost.double_tree_all_reduce(n, S)
        assert (found.rounds, found.chain_bytes) == (2 * deep, deep * S)
    for n in range(3, 300):
        least = n.bit_length() + (n + 1).bit_length() - 3
        assert cost.double_tree_all_reduce(n, 0).rounds in (2 * least, 2 * least + 2)


def test_chunks_of_two_trees_follow_each_other_in_every_second_step():
    for n, deep in ((3, 2), (4, 3), (8, 5), (64, 11), (1024, 19)):
        for chunks in (1, 2, 8, 64):
            found = cost.double_tree_all_reduce(n, S, chunks_per_half=chunks)
            steps = deep + 2 * (chunks - 1)
            assert found.rounds == 2 * steps and max(found.messages) <= 4 * chunks
            assert found.chain_bytes == steps * S / chunks
            assert found.sent_bytes == cost.double_tree_all_reduce(n, S).sent_bytes
    with pytest.raises(InvalidArgument, match="chunks_per_half"):
        cost.double_tree_all_reduce(4, S, chunks_per_half=0)


def test_a_rank_of_two_trees_has_one_message_each_way_in_a_step():
    for n in ANY:
        steps = two_trees.stride(n)
        sends = Counter((e.parent, e.step % steps) for e in two_trees.two_trees(n))
        receives = Counter((e.child, e.step % steps) for e in two_trees.two_trees(n))
        assert max([*sends.values(), *receives.values(), 0]) <= 1


def test_how_many_chunks_are_taken_is_not_far_from_the_best():
    for name, worst in (("NVLink 4", 1.21), ("Ethernet 10G TCP", 1.39)):
        link = LINKS[name].latency_s, LINKS[name].bytes_per_s
        for n in (4, 64, 1024):
            for size in (2**16, 2**20, 2**24, 2**30):
                taken = cost.double_tree_all_reduce(n, size).seconds(*link)
                others = [
                    cost.double_tree_all_reduce(n, size, chunks_per_half=2**k)
                    for k in range(12)
                ]
                assert taken <= worst * min(each.seconds(*link) for each in others)


def test_no_rank_of_two_trees_sends_more_than_twice_the_tensor():
    for n in ANY:
        assert max(cost.double_tree_all_reduce(n, S).sent_bytes) <= 2 * S


FAST, SLOW = Link(latency_s=1, bytes_per_s=9), Link(latency_s=4, bytes_per_s=1)


def test_two_kinds_of_link_as_worked_out_by_hand():
    """Eight ranks in two nodes of four, 320 bytes: 40 a chunk, 10 on four rings."""

    def rings(channels, inside=FAST, outside=SLOW):
        options = {"ranks_per_node": 4, "channels": channels}
        return cost.multi_ring_all_reduce_s(8, 320, inside, outside, **options)

    assert [rings(c) for c in (1, 2, 4)] == [14 * (4 + b) for b in (40, 20, 10)]
    # three of four rings are inside for a rank, and with two rings both are
    assert [rings(c, SLOW, FAST) for c in (1, 2, 4)] == [
        14 * (4 + b) for b in (40, 40, 30)
    ]
    halves = cost.hierarchical_all_reduce_s(8, 320, FAST, SLOW, ranks_per_node=4)
    assert halves == pytest.approx(6 * (1 + 80 / 9) + 2 * (4 + 40))
    for fn in (cost.multi_ring_all_reduce_s, cost.hierarchical_all_reduce_s):
        assert fn(1, 320, FAST, SLOW, ranks_per_node=4) == 0
        assert fn(4, 360, FAST, SLOW, ranks_per_node=4) == pytest.approx(6 * (1 + 10))
        with pytest.raises(InvalidArgument, match="6 ranks do not fill nodes of 4"):
            fn(6, 320, FAST, SLOW, ranks_per_node=4)
    with pytest.raises(InvalidArgument, match="channels divides ranks_per_node=4"):
        rings(3)


def rings_by_events(n, g, channels, chunk, inside, outside):
    """Seconds of rings that send on what has arrived; a port sends one at a time."""
    orders = [ring_order(n, channels, c) for c in range(channels)]
    ready = [(0.0, c, place, 0) for c in range(channels) for place in range(n)]
    free, end = {}, 0.0
    while ready:
        at, c, place, step = heapq.heappop(ready)
        src, dst = orders[c][place], orders[c][(place + 1) % n]
        port = src, src // g != dst // g
        link = outside if port[1] else inside
        free[port] = max(at, free.get(port, 0.0)) + chunk / link.bytes_per_s
        arrived = free[port] + link.latency_s
        end = max(end, arrived)
        if step + 1 < 2 * (n - 1):
            heapq.heappush(ready, (arrived, c, (place + 1) % n, step + 1))
    return end


@pytest.mark.parametrize(("n", "g"), [(8, 8), (8, 4), (16, 8), (24, 8), (4, 1)])
def test_pipelined_rings_count_latency_along_one_chunks_way(n, g):
    """Exact if only latency counts, else at most that much more than its bytes."""
    inside, outside = Link(3.4e-6, 450e9), Link(14e-6, 50e9)
    for chunk in (1, 1000, 400_000):
        how = {"ranks_per_node": g, "channels": g}
        size = chunk * g * n
        bound = cost.multi_ring_all_reduce_s(
            n, size, inside, outside, pipelined=True, **how
        )
        took = rings_by_events(n, g, g, chunk, inside, outside)
        in_rounds = cost.multi_ring_all_reduce_s(n, size, inside, outside, **how)
        assert took <= bound * (1 + 1e-9)
        assert bound <= in_rounds * (1 + 1e-9)
        if chunk == 1:
            assert took == pytest.approx(bound, rel=1e-3)


def test_seconds_add_latency_moving_and_adding():
    found = cost.ring_all_reduce(4, 400)
    assert found.seconds(1, 100) == 6 + 6
    assert found.seconds(1, 100, 50) == 6 + 6 + 6


@pytest.mark.parametrize("name", NAMES)
def test_worlds_and_tensors_that_cannot_be_are_refused(name):
    for arguments in (
        {"n": 0},
        {"n": 2.5},
        {"n": 4, "size": -8},
        {"n": 4, "size": 0.5},
    ):
        with pytest.raises(InvalidArgument):
            of(name, **arguments)
    with pytest.raises(InvalidArgument, match="no number of items of 4 bytes"):
        of(name, 4, 10, itemsize=4)
    assert of(name, 4, 4e6) == of(name, 4, 4_000_000)
    if "root" in inspect.signature(getattr(cost, name)).parameters:
        with pytest.raises(InvalidArgument, match="no rank of a world of 4"):
            of(name, 4, root=4)


def test_thousands_of_ranks_are_soon_counted():
    for name in NAMES:
        found = of(name, 1024, 1000 * S)
        assert math.isfinite(found.seconds(1e-6, 1e9)) and found.rounds <= 2 * 2046
