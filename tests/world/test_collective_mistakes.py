"""Collectives called wrongly: found before anything hangs, and named with the rank."""

import inspect

import numpy as np
import pytest
import torch

from distlab import (
    InvalidArgument,
    MessageMismatch,
    RankRaised,
    World,
    WorldFailed,
    collectives,
    run,
)
from distlab.collectives import AVERAGE, SUM
from distlab.links import Link
from distlab.simulated import Uniform

N = 4
NAMES = [name for name in collectives.__all__ if "_" in name and "barrier" not in name]
ROOTED = [
    n for n in NAMES if "root" in inspect.signature(getattr(collectives, n)).parameters
]
REDUCING = [
    n for n in NAMES if "op" in inspect.signature(getattr(collectives, n)).parameters
]


class Simulated:
    """A world of N ranks on a virtual clock, in this process."""

    def run(self, function, *args):
        return run(function, N, args=args, fabric=Uniform(Link(1e-6, 1e9)))


@pytest.fixture(scope="module")
def worlds():
    with World(N) as real:
        yield {"simulated": Simulated(), "real": real}


@pytest.fixture
def world(worlds, request):
    """Return a world in which tests make mistakes: of real ranks or of simulated."""
    return worlds[getattr(request, "param", "simulated")]


def everywhere(names):
    """Parametrize by all algorithms on simulated ranks, and by one on real ones."""
    ring = "ring_all_reduce" if "ring_all_reduce" in names else names[0]
    cases = [("real", ring), *(("simulated", name) for name in names)]
    return pytest.mark.parametrize(("world", "name"), cases, indirect=["world"])


def call(comm, name, tensor, **options):
    """Call any collective on one tensor, or on n of its kind where it takes a list."""
    function = getattr(collectives, name)
    if "hierarchical" in name:
        options.setdefault("ranks_per_node", 2)
    if "all_to_all" in name:
        return function(comm, [tensor] * comm.world_size, **options)
    if "scatter" in name and "pieces" in inspect.signature(function).parameters:
        return function(comm, tensor, [tensor] * comm.world_size, **options)
    return function(comm, tensor, **options)


def reason(world, function, *args):
    """Return the exception that ends a call; it must be one rank's own."""
    with pytest.raises(RankRaised) as raised:
        world.run(function, *args)
    return raised.value.cause, raised.value.rank


@everywhere(NAMES)
def test_what_is_no_tensor_is_refused_by_the_rank_that_has_it(world, name):
    def mistaken(comm, thing):
        call(comm, name, thing if comm.rank == 2 else np.zeros(6))

    for thing in ([1.0, 2.0], np.float32(1), torch.zeros(4, 6).T):
        cause, rank = reason(world, mistaken, thing)
        assert isinstance(cause, InvalidArgument) and rank == 2
        assert "rank 2: " in str(cause)


@everywhere(ROOTED)
def test_a_root_that_is_no_rank_is_refused(world, name):
    for root in (N, -1, True):
        cause, rank = reason(
            world, lambda comm, root: call(comm, name, torch.zeros(3), root=root), root
        )
        assert isinstance(cause, InvalidArgument)
        assert f"rank {rank}: root={root!r} is no rank" in str(cause)


@everywhere(REDUCING)
def test_what_cannot_be_reduced_like_that_is_refused(world, name):
    for tensor in (torch.arange(5), np.arange(5)):
        cause, rank = reason(
            world, lambda comm, tensor: call(comm, name, tensor, op=AVERAGE), tensor
        )
        assert isinstance(cause, InvalidArgument)
        assert f"rank {rank}: the average of int64" in str(cause)
    cause, _ = reason(world, lambda comm: call(comm, name, torch.ones(1), op="sum"))
    assert isinstance(cause, InvalidArgument) and "op is a reduction" in str(cause)


def test_a_list_must_have_one_tensor_for_each_rank_all_alike(world):
    def mistaken(comm, pieces):
        if comm.rank == 1:
            collectives.pairwise_all_to_all(comm, pieces)
        else:
            collectives.pairwise_all_to_all(comm, [torch.zeros(2)] * N)

    lists = [[torch.zeros(2)] * (N - 1), torch.zeros(N, 2), None]
    lists += [[torch.zeros(2)] * (N - 1) + [torch.zeros(1, 2)]]
    lists += [[torch.zeros(2)] * (N - 1) + [torch.zeros(2, dtype=torch.float64)]]
    for pieces in lists:
        cause, rank = reason(world, mistaken, pieces)
        assert isinstance(cause, InvalidArgument) and rank == 1


def test_unequal_tensors_need_an_algorithm_and_lengths_that_fit(world):
    def mistaken(comm, name, **options):
        rows = [torch.zeros(2 * (peer == comm.rank), 3) for peer in range(N)]
        getattr(collectives, name)(comm, rows, **options)

    def numbers(comm):
        collectives.pairwise_all_to_all(comm, [torch.zeros(())] * N, lengths=[0] * N)

    def reason_of(name, **options):
        return reason(world, lambda comm: mistaken(comm, name, **options))

    found = [
        (reason_of("pairwise_all_to_all"), "exchange_lengths(comm, tensors) asks"),
        (reason_of("bruck_all_to_all"), "pairwise_all_to_all takes unequal ones"),
        (reason(world, numbers), "one shape after dim 0"),
    ]
    for lengths in ([2] * 3, [1] * N, [-1, 2, 2, 2], [2.0] * N, 2):
        wrong = reason_of("pairwise_all_to_all", lengths=lengths)
        found.append((wrong, "lengths are 4 whole numbers"))
    for (cause, rank), words in found:
        assert isinstance(cause, InvalidArgument)
        assert words in str(cause) and f"rank {rank}: " in str(cause)


@pytest.mark.parametrize("world", ["real", "simulated"], indirect=True)
def test_a_length_that_is_not_what_the_sender_has_is_a_mismatch(world):
    def mistaken(comm):
        rows = [torch.zeros(2, 3)] * N
        lengths = [2, 2, 2, 2 + (comm.rank == 1)]
        collectives.pairwise_all_to_all(comm, rows, lengths=lengths)

    assert isinstance(reason(world, mistaken)[0], MessageMismatch)


@everywhere(list(collectives.variants("scatter")))
def test_the_pieces_of_a_scatter_must_fit_the_roots_tensor(world, name):
    def mistaken(comm, piece):
        getattr(collectives, name)(comm, torch.zeros(3), [piece] * N, root=2)

    for piece in (torch.zeros(2), torch.zeros(3, 1), np.zeros(3, np.float32)):
        cause, rank = reason(world, mistaken, piece)
        assert isinstance(cause, InvalidArgument) and rank == 2


def test_pieces_and_nodes_must_be_enough(world):
    cause, _ = reason(
        world,
        lambda comm: collectives.pipelined_ring_all_reduce(
            comm, torch.zeros(3), pieces_per_chunk=1
        ),
    )
    assert isinstance(cause, InvalidArgument) and "pieces_per_chunk" in str(cause)
    for number in (0, 2.0, None):
        cause, _ = reason(
            world,
            lambda comm, number: collectives.multi_ring_all_reduce(
                comm, torch.zeros(3), channels=number
            ),
            number,
        )
        assert isinstance(cause, InvalidArgument) and "channels" in str(cause)
        cause, _ = reason(
            world,
            lambda comm, number: collectives.hierarchical_all_reduce(
                comm, torch.zeros(3), ranks_per_node=number
            ),
            number,
        )
        assert isinstance(cause, InvalidArgument) and "ranks_per_node" in str(cause)


def test_a_read_only_array_is_refused(world):
    def mistaken(comm):
        array = np.zeros(4)
        array.flags.writeable = False
        collectives.ring_all_reduce(comm, array)

    assert isinstance(reason(world, mistaken)[0], InvalidArgument)


ODD_ONES = [
    (np.zeros(11, np.float32), "another length"),
    (np.zeros(10, np.int32), "another type of the same size"),
    (np.zeros(0, np.float32), "nothing"),
]


@everywhere(NAMES)
@pytest.mark.parametrize(
    "odd", [odd for odd, _ in ODD_ONES], ids=[w for _, w in ODD_ONES]
)
def test_one_rank_with_another_tensor_is_named_never_waited_for(world, name, odd):
    def mistaken(comm):
        call(comm, name, odd if comm.rank == 1 else np.zeros(10, np.float32))

    with pytest.raises(WorldFailed) as raised:
        world.run(mistaken)
    cause = raised.value.cause
    assert isinstance(cause, MessageMismatch), raised.value
    assert "rank 1" in str(cause)


@everywhere(NAMES)
def test_half_of_the_ranks_with_another_length_are_noticed(world, name):
    def mistaken(comm, some):
        call(comm, name, np.zeros(10 + (comm.rank in some), np.float32))

    for some in ({0, 1}, {0, 2}):
        with pytest.raises(RankRaised) as raised:
            world.run(mistaken, some)
        assert isinstance(raised.value.cause, MessageMismatch)


def test_what_no_message_shows_is_not_noticed(world):
    def unnoticed(comm):
        shape = (2, 3) if comm.rank else (6,)
        tensor = torch.ones(shape)
        collectives.ring_all_reduce(comm, tensor, op=SUM)
        return tuple(tensor.shape)

    assert run(unnoticed, N).results == [(6,)] + [(2, 3)] * 3


def test_a_name_that_no_collective_has_is_refused():
    with pytest.raises(InvalidArgument, match="no collective 'allreduce'"):
        collectives.variants("allreduce")
    with pytest.raises(AttributeError, match="no attribute 'star_all_reduce'"):
        collectives.star_all_reduce  # noqa: B018
