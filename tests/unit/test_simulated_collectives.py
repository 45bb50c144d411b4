"""Every collective on simulated ranks: its messages, bytes, rounds and seconds."""

import inspect

import numpy as np
import pytest
import torch
from soaks import nightly

from distlab import collectives, cost, run
from distlab.collectives.all_to_all import exchange_lengths
from distlab.links import Link
from distlab.simulated import Nodes, Overlapped, Uniform

# A number takes as long as a latency, or nearly, so that neither hides the other.
LINK = Link(latency_s=3e-6, bytes_per_s=2e6)
COLLECTIVES = [
    "broadcast",
    "reduce",
    "all_reduce",
    "gather",
    "all_gather",
    "scatter",
    "reduce_scatter",
    "all_to_all",
    "barrier",
]
SIZES = [*range(1, 10), 17]
SIZES += map(nightly, (*range(10, 17), 23, 31, 32, 33, 48, 63, 64))
ALGORITHMS = [name for each in COLLECTIVES for name in collectives.variants(each)]


def options_of(name, n):
    takes = inspect.signature(getattr(collectives, name)).parameters
    every = {"root": n // 2, "ranks_per_node": 4, "pieces_per_chunk": 3}
    every["chunks_per_half"] = every["channels"] = 3
    every["nearest_first"] = n % 5 < 3  # of the powers of two some
    return {key: value for key, value in every.items() if key in takes}


def play(comm, name, numbers):
    """Call a collective on arrays that tell whose they are; return what came of it."""
    function, options = getattr(collectives, name), options_of(name, comm.world_size)
    array = np.full(numbers, float(comm.rank))
    if name.endswith("barrier"):
        return function(comm)
    if name.endswith("all_to_all"):
        return function(comm, [array + 100 * peer for peer in range(comm.world_size)])
    if name.endswith("_scatter") and "reduce" not in name:
        pieces = [array * 0 + peer for peer in range(comm.world_size)]
        pieces = pieces if comm.rank == options["root"] else None
        function(comm, array, pieces, **options)
        return array
    got = function(comm, array, **options)
    return array if got is None and "gather" not in name else got


def simulated(name, n, numbers):
    fabric = Overlapped(Uniform(LINK)) if "multi_ring" in name else Uniform(LINK)
    return run(play, n, args=(name, numbers), fabric=fabric)


def cost_of(name, n, numbers):
    formula = getattr(cost, name)
    if name.endswith("barrier"):
        return formula(n)
    return formula(n, 8 * numbers, itemsize=8, **options_of(name, n))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_messages_bytes_rounds_and_seconds_are_those_that_cost_predicts(name, n):
    for numbers in (0, 1, 3 * n + 1):
        report, expected = simulated(name, n, numbers), cost_of(name, n, numbers)
        trace = report.trace
        sent = tuple(trace.bytes_sent(rank) for rank in range(n))
        messages = tuple(trace.messages_sent(rank) for rank in range(n))
        assert (sent, messages) == (expected.sent_bytes, expected.messages), numbers
        assert trace.rounds() == expected.rounds, numbers
        seconds = expected.seconds(LINK.latency_s, LINK.bytes_per_s)
        # their longest chunks are on no one chain
        if numbers and ("double_tree" in name or "multi_ring" in name):
            assert report.elapsed_s <= seconds * (1 + 1e-9), numbers
        else:
            assert report.elapsed_s == pytest.approx(seconds, rel=1e-9), numbers


@pytest.mark.parametrize("n", [*range(1, 9), 13, 32])
def test_two_trees_are_torchs_sum_in_the_time_of_the_closed_form(n):
    inputs = torch.randint(-9, 9, (n, 240), generator=torch.Generator().manual_seed(n))
    for chunks in (1, 2, 5, 8, None):
        report = run(sum_on_two_trees, n, args=(inputs, chunks), fabric=Uniform(LINK))
        assert all(torch.equal(got, inputs.sum(0)) for got in report.results)
        expected = cost.double_tree_all_reduce(n, 1920, chunks_per_half=chunks)
        assert report.trace.rounds() == expected.rounds
        seconds = expected.seconds(LINK.latency_s, LINK.bytes_per_s)
        assert report.elapsed_s == pytest.approx(seconds, rel=1e-9)


@pytest.mark.parametrize(("n", "g"), [(4, 4), (6, 2), (8, 4), (24, 8)])
def test_rings_on_all_nics_take_the_time_of_the_closed_form(n, g):
    """Also the plain ring and the hierarchical one, on nodes with two kinds of link."""
    inside, outside = Link(1e-6, 8e6), LINK
    fabric = Overlapped(Nodes(g, inside, outside))
    inputs = torch.randint(-9, 9, (n, 8 * n * g), dtype=torch.float64)
    size, links = inputs[0].nbytes, (inside, outside)

    def simulated_s(name, **options):
        report = run(sum_with, n, args=(inputs, name, options), fabric=fabric)
        assert all(torch.equal(got, inputs.sum(0)) for got in report.results)
        return report.elapsed_s

    for channels in (c for c in (1, 2, 4, 8) if g % c == 0):
        how = {"ranks_per_node": g, "channels": channels}
        expected = cost.multi_ring_all_reduce_s(n, size, *links, **how)
        took = simulated_s("multi_ring_all_reduce", channels=channels)
        assert took == pytest.approx(expected, rel=1e-9), channels
    expected = cost.multi_ring_all_reduce_s(n, size, *links, ranks_per_node=g)
    assert simulated_s("ring_all_reduce") == pytest.approx(expected, rel=1e-9)
    expected = cost.hierarchical_all_reduce_s(n, size, *links, ranks_per_node=g)
    took = simulated_s("hierarchical_all_reduce", ranks_per_node=g)
    assert took == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("n", [1, 2, 4, 6, 8, 13])
def test_rabenseifners_reduce_costs_what_its_two_parts_do(n):
    def reduces(comm, root):
        chunk = collectives.recursive_halving_reduce_scatter(comm, np.ones(5 * n))
        gathered = collectives.tree_gather(comm, chunk, root=root)
        return comm.rank != root or np.concatenate(gathered).tolist() == [n] * (5 * n)

    for root in {0, n // 2, n - 1}:
        report = run(reduces, n, args=(root,), fabric=Uniform(LINK))
        expected = cost.rabenseifner_reduce(n, 40 * n, itemsize=8, root=root)
        trace, ranks = report.trace, range(n)
        assert all(report.results)
        assert tuple(map(trace.bytes_sent, ranks)) == expected.sent_bytes
        assert tuple(map(trace.messages_sent, ranks)) == expected.messages
        if n & (n - 1) == 0:  # else the parts overlap
            seconds = expected.seconds(LINK.latency_s, LINK.bytes_per_s)
            assert report.elapsed_s == pytest.approx(seconds)
            assert trace.rounds() == expected.rounds


def sum_with(comm, inputs, name, options):
    tensor = inputs[comm.rank].clone()
    getattr(collectives, name)(comm, tensor, **options)
    return tensor


def sum_on_two_trees(comm, inputs, chunks):
    tensor = inputs[comm.rank].clone()
    collectives.double_tree_all_reduce(comm, tensor, chunks_per_half=chunks)
    return tensor


@pytest.mark.parametrize("n", [2, 7, 32, nightly(100)])
def test_a_sum_is_everybodys_at_every_size(n):
    for name in collectives.variants("all_reduce"):
        for result in simulated(name, n, 11).results:
            assert (result == n * (n - 1) / 2).all(), name


@pytest.mark.parametrize(("nearest_first", "crossing"), [(True, 28), (False, 224)])
def test_halving_from_the_nearest_on_keeps_the_large_messages_in_a_node(
    nearest_first, crossing
):
    def reduces(comm):
        array = np.ones(128, np.int8)
        options = {"nearest_first": nearest_first}
        collectives.halving_doubling_all_reduce(comm, array, **options)

    trace = run(reduces, 64, fabric=Uniform(LINK)).trace
    for rank in (0, 27, 63):
        sent = trace.of(rank, "send")
        assert sum(e.bytes for e in sent if e.peer // 8 != rank // 8) == crossing


def scattered(comm, reduce_scatter, numbers):
    return reduce_scatter(comm, np.arange(numbers) * (comm.rank + 1.0)).copy()


@pytest.mark.parametrize("n", [*range(1, 9), 13])
def test_every_reduce_scatter_leaves_each_rank_its_chunk_of_the_sum(n):
    for name, algorithm in collectives.variants("reduce_scatter").items():
        arguments = algorithm, 2 * n + 3
        got = run(scattered, n, args=arguments, fabric=Uniform(LINK)).results
        whole = np.arange(2 * n + 3) * (n * (n + 1) / 2)
        assert (np.concatenate(got) == whole).all(), name


def rows_for(rank, n):
    return [(rank * peer) % 5 for peer in range(n)]


def exchange(comm):
    tensors = [np.full(k, comm.rank) for k in rows_for(comm.rank, comm.world_size)]
    lengths = exchange_lengths(comm, tensors)
    got = collectives.pairwise_all_to_all(comm, tensors, lengths=lengths)
    return [each.tolist() for each in got]


def test_unequal_tensors_take_at_most_what_their_longest_messages_take():
    for n in (1, 2, 7, 32):
        report = run(exchange, n, fabric=Uniform(LINK))
        rows = [[8 * k for k in rows_for(rank, n)] for rank in range(n)]
        expected = cost.pairwise_all_to_all(n, rows) + cost.pairwise_all_to_all(n, 8)
        for rank, got in enumerate(report.results):
            assert got == [[p] * rows_for(p, n)[rank] for p in range(n)]
            assert report.trace.bytes_sent(rank) == expected.sent_bytes[rank]
            assert report.trace.messages_sent(rank) == expected.messages[rank]
        longest = expected.seconds(LINK.latency_s, LINK.bytes_per_s)
        assert report.elapsed_s <= longest * (1 + 1e-9)
