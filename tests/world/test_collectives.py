"""Every collective, on real and simulated ranks: results, and traces against cost.

The ranks of a world play many cases in one call. A mark begins each case, so that the
kernel can cut the trace into one for each, and compare it with what `cost` says.
"""

import inspect
from bisect import bisect_left
from collections import Counter
from contextlib import nullcontext
from typing import NamedTuple

import numpy as np
import pytest
import torch
from soaks import nightly

from distlab import Trace, World, collectives, cost, run
from distlab.collectives import AVERAGE, MAX, MIN, PRODUCT, SUM
from distlab.collectives.all_to_all import exchange_lengths
from distlab.collectives.chunks import chunk_edges
from distlab.links import LINKS
from distlab.simulated import Uniform

REAL = [2, 4, *(nightly(n) for n in (1, 3, 7))]
REAL += [pytest.param(n, marks=pytest.mark.soak) for n in (5, 6, 8, 9, 16)]
SHAPES = [(), (0,), (1,), (3,), (5, 2), (0, 3), (23,)]
TYPES = [torch.float32, torch.float64, torch.bfloat16, torch.int64]
TYPES += [np.dtype(kind) for kind in ("float32", "float64", "int64")]
FOLDED = {
    "SUM": np.add.reduce,
    "MAX": np.maximum.reduce,
    "MIN": np.minimum.reduce,
    "PRODUCT": np.multiply.reduce,
    "AVERAGE": lambda stack: np.add.reduce(stack) / len(stack),
}


class Case(NamedTuple):
    """One call: which algorithm, on what tensor, with which options."""

    algorithm: str
    shape: tuple
    dtype: object
    options: dict

    def cost(self, world_size):
        size = int(np.prod(self.shape)) * self.dtype.itemsize
        options = {k: v for k, v in self.options.items() if k != "op"}
        formula = getattr(cost, self.algorithm)
        return formula(world_size, size, itemsize=self.dtype.itemsize, **options)


def cases_of(collective, n):
    """Return cases of all its algorithms: all shapes, types, reductions and roots."""
    cases = []
    for name, algorithm in collectives.variants(collective).items():
        takes = inspect.signature(algorithm).parameters
        ops = [SUM, MAX, MIN, PRODUCT, AVERAGE] if "op" in takes else [SUM]
        kinds = [(dtype, op) for op in ops for dtype in TYPES]
        if n != 3:  # enough of them to see every type and every reduction
            kinds = kinds[:: len(kinds) // 7]
        tensors = [(shape, TYPES[n % 2 * 4], SUM) for shape in [*SHAPES, (2 * n,)]]
        tensors += [
            ((n + 3,), dtype, op)
            for dtype, op in kinds
            if op is not AVERAGE or "int" not in str(dtype)
        ]
        for place, (shape, dtype, op) in enumerate(tensors):
            options = {
                "op": op,
                "root": place % n,
                "ranks_per_node": place % (n + 1) + 1,
            }
            options["pieces_per_chunk"] = place % 3 + 2
            options["chunks_per_half"] = place % 4 or None
            options["channels"] = place % 4 + 1
            options["nearest_first"] = place % 2 == 0
            options = {key: value for key, value in options.items() if key in takes}
            cases.append(Case(name, shape, dtype, options))
    return cases


class Simulated(NamedTuple):
    """What is like a `World` of simulated ranks."""

    world_size: int

    def run(self, fn, *args):
        fabric = Uniform(LINKS["InfiniBand NDR"])
        return run(fn, self.world_size, args=args, fabric=fabric)


@pytest.fixture(scope="module", params=[*REAL, *map(Simulated, (1, 3, 7))], ids=str)
def world(request):
    given = request.param
    with World(given) if isinstance(given, int) else nullcontext(given) as world:
        yield world


def tensor_of(values, dtype):
    values = np.asarray(values)
    if isinstance(dtype, np.dtype):
        return values.astype(dtype)
    return torch.tensor(values).to(dtype)


def play(comm, collective, cases):
    """Play the cases; return what went wrong, in words."""
    wrong = []
    for number, case in enumerate(cases):
        many = comm.world_size ** (2 if collective == "all_to_all" else 1)
        draw = np.random.default_rng(number)
        values = draw.choice([-2, -1, 1, 2], (many, *case.shape))
        function = getattr(collectives, case.algorithm)
        comm.mark("case")
        got, expected = PLAYS[collective](comm, function, case, values)
        if not same(got, expected, case.options.get("op")):
            wrong.append(f"{case}: got {got}, expected {expected}")
    return wrong


def same(got, expected, op):
    """Return whether both are equal, of one shape; an average may be rounded."""
    if isinstance(got, list):
        return len(got) == len(expected) and all(
            map(same, got, expected, [op] * len(got))
        )
    if expected is None or got is None:
        return expected is got
    found = got.double().numpy() if isinstance(got, torch.Tensor) else got
    close = 1e-2 if "bfloat16" in str(got.dtype) else 1e-6
    close = close if op is not None and op.name == "AVERAGE" else 0
    return found.shape == expected.shape and np.allclose(found, expected, close, 0)


def in_place(expectation):
    """Return a player of collectives that change the tensor they are given."""

    def player(comm, function, case, values):
        tensor = tensor_of(values[comm.rank], case.dtype)
        assert function(comm, tensor, **case.options) is None
        return tensor, expectation(comm, case, values)

    return player


def folded(comm, case, values):
    return np.asarray(FOLDED[case.options["op"].name](values))


def reduced(comm, case, values):
    here = comm.rank == case.options["root"]
    return folded(comm, case, values) if here else values[comm.rank]


def play_gather(comm, function, case, values):
    got = function(comm, tensor_of(values[comm.rank], case.dtype), **case.options)
    here = comm.rank == case.options.get("root", comm.rank)
    return got, values if here else None


def play_scatter(comm, function, case, values):
    tensor = tensor_of(np.zeros(case.shape), case.dtype)
    pieces = None
    if comm.rank == case.options["root"]:
        pieces = [tensor_of(each, case.dtype) for each in values]
    function(comm, tensor, pieces, **case.options)
    return tensor, values[comm.rank]


def play_reduce_scatter(comm, function, case, values):
    tensor = tensor_of(values[comm.rank], case.dtype)
    got = function(comm, tensor, **case.options)
    everything = folded(comm, case, values).reshape(-1)
    edges = chunk_edges(len(everything), comm.world_size)
    start, end = edges[comm.rank : comm.rank + 2]
    got[...] = got + 0  # writes to the tensor, of which it is a view
    return tensor.reshape(-1)[start:end], everything[start:end]


def play_all_to_all(comm, function, case, values):
    n, rank = comm.world_size, comm.rank
    mine = [tensor_of(each, case.dtype) for each in values[rank * n : (rank + 1) * n]]
    return function(comm, mine), [values[peer * n + rank] for peer in range(n)]


PLAYS = {
    "broadcast": in_place(lambda comm, case, values: values[case.options["root"]]),
    "reduce": in_place(reduced),
    "all_reduce": in_place(folded),
    "gather": play_gather,
    "all_gather": play_gather,
    "scatter": play_scatter,
    "reduce_scatter": play_reduce_scatter,
    "all_to_all": play_all_to_all,
}


def traces_of(trace):
    """Return the trace of each case: what has a number of a call after its mark's."""
    begun = (trace.of(rank, "mark") for rank in range(trace.world_size))
    before = [[mark.step for mark in marks if mark.label == "case"] for marks in begun]
    events = [[] for _ in before[0]]
    for event in trace.events:
        if event.kind != "mark":
            events[bisect_left(before[event.rank], event.step) - 1].append(event)
    return [Trace(trace.world_size, each) for each in events]


@pytest.mark.parametrize("collective", PLAYS)
def test_results_are_right_and_traces_cost_what_they_should(world, collective):
    n = world.world_size
    cases = cases_of(collective, n)
    report = world.run(play, collective, cases)
    wrong = [line for lines in report.results for line in lines]
    assert not wrong, f"{len(wrong)} are wrong, such as {wrong[0]}"
    for case, trace in zip(cases, traces_of(report.trace), strict=True):
        expected = case.cost(n)
        sent = tuple(trace.bytes_sent(rank) for rank in range(n))
        messages = tuple(trace.messages_sent(rank) for rank in range(n))
        assert (sent, messages) == (expected.sent_bytes, expected.messages), case
        assert trace.rounds() == expected.rounds, case


def uneven(rank, n):
    """Return how many rows a rank has for each rank: some none, rank 1 none at all."""
    return [(2 * rank + peer) % 4 * (rank != 1) for peer in range(n)]


def unequal_all_to_all(comm, dtype, described):
    """Exchange rows that say whose they are; return the lengths, and whether right."""
    n, rank = comm.world_size, comm.rank
    mine = [
        tensor_of(np.full((rows, 3), 10 * rank + peer), dtype)
        for peer, rows in enumerate(uneven(rank, n))
    ]
    lengths = [uneven(peer, n)[rank] for peer in range(n)]
    if not described:
        lengths = exchange_lengths(comm, mine)
    got = collectives.pairwise_all_to_all(comm, mine, lengths=lengths)
    expected = [np.full((r, 3), 10 * p + rank) for p, r in enumerate(lengths)]
    alike = {type(each) for each in got} == {type(mine[0])}
    return lengths, alike and same(got, expected, None)


def test_rows_of_unequal_number_cost_their_bytes_and_8_to_ask_for_a_length(world):
    n = world.world_size
    for dtype in (torch.float64, torch.bfloat16, np.dtype("float32")):
        rows = [[3 * dtype.itemsize * r for r in uneven(rank, n)] for rank in range(n)]
        expected = cost.pairwise_all_to_all(n, rows, itemsize=dtype.itemsize)
        for described in (True, False):
            report = world.run(unequal_all_to_all, dtype, described)
            for rank, (lengths, right) in enumerate(report.results):
                assert right and lengths == [uneven(peer, n)[rank] for peer in range(n)]
            total = expected if described else expected + cost.pairwise_all_to_all(n, 8)
            trace = report.trace
            sent = tuple(trace.bytes_sent(rank) for rank in range(n))
            messages = tuple(trace.messages_sent(rank) for rank in range(n))
            assert (sent, messages) == (total.sent_bytes, total.messages)
            assert trace.rounds() == total.rounds


@pytest.mark.parametrize("fabric", [None, Uniform(LINKS["InfiniBand NDR"])])
def test_each_of_two_rings_leaves_a_node_of_two_through_its_own_rank(fabric):
    """The rings are 0 1 2 3 and 1 0 3 2; each link carries 6/4 of half of 160 bytes."""

    def sums(comm):
        tensor = torch.full((40,), float(comm.rank))
        collectives.multi_ring_all_reduce(comm, tensor, channels=2)
        return tensor.unique().tolist()

    report = run(sums, 4, fabric=fabric)
    assert report.results == [[6.0]] * 4
    by_link = Counter()
    for message in report.trace.messages():
        by_link[message.send.rank, message.send.peer] += message.send.bytes
    rings = [(0, 1), (1, 2), (2, 3), (3, 0), (1, 0), (0, 3), (3, 2), (2, 1)]
    assert by_link == dict.fromkeys(rings, 120)


def test_all_ranks_end_with_the_same_bits_and_near_torchs_own_sum(world):
    def compare(comm):
        n = comm.world_size
        draws = [torch.Generator().manual_seed(rank) for rank in range(n)]
        shares = torch.stack([torch.randn(n + 40, generator=draw) for draw in draws])
        results = {}
        for name, function in collectives.variants("all_reduce").items():
            options = {"ranks_per_node": 3} if "hierarchical" in name else {}
            tensor = shares[comm.rank].clone()
            function(comm, tensor, **options)
            close = torch.allclose(tensor, shares.sum(0), rtol=1e-5, atol=1e-5)
            results[name] = close, tensor.tolist()
        return results

    report = world.run(compare)
    for name, (close, numbers) in report.results[0].items():
        assert close, name
        assert all(each[name] == (True, numbers) for each in report.results), name


@pytest.mark.parametrize("name", collectives.variants("barrier"))
def test_nobody_leaves_a_barrier_before_the_last_has_come(world, name):
    def meet(comm, late):
        with comm.work("come", seconds=0.01 * (comm.rank == late)):
            pass
        getattr(collectives, name)(comm)
        comm.mark("left")

    n = world.world_size
    expected = getattr(cost, name)(n)
    for late in range(n):
        trace = world.run(meet, late).trace
        came = max(e.end for e in trace.events if e.kind == "work")
        assert came <= min(e.start for e in trace.events if e.label == "left")
        messages = tuple(trace.messages_sent(rank) for rank in range(n))
        assert messages == expected.messages
        assert not any(trace.bytes_sent(rank) for rank in range(n))
        assert trace.rounds() == expected.rounds


def test_a_parameter_is_changed_in_place_like_any_tensor(world):
    def start(comm):
        weight = torch.nn.Parameter(torch.full((4, 3), float(comm.rank)))
        collectives.tree_broadcast(comm, weight, root=comm.world_size - 1)
        collectives.ring_all_reduce(comm, weight)
        return weight.requires_grad and weight.detach().unique().tolist()

    n = world.world_size
    assert world.run(start).results == [[float(n * (n - 1))]] * n
