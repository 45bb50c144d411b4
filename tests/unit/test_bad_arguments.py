"""Whatever a world cannot be made from is refused before anything starts."""

import threading

import pytest

from distlab import Hang, InvalidArgument, Kill, NotSerializable, Slow, World, run


def rank_of(comm):
    return comm.rank


@pytest.mark.parametrize("world_size", [0, -1, "4", 2.5, True, None, float("nan")])
def test_a_world_size_that_is_no_positive_whole_number(world_size):
    with pytest.raises(InvalidArgument, match="world_size"):
        run(rank_of, world_size)
    with pytest.raises(InvalidArgument, match="world_size"):
        World(world_size)


def test_a_world_that_memory_cannot_hold_says_how_many_ranks_fit():
    with pytest.raises(InvalidArgument, match=r"Up to \d+ ranks fit"):
        run(rank_of, 10**7)


@pytest.mark.parametrize("fn", [3, None, "hello", [rank_of]])
def test_something_that_is_not_callable(fn):
    with pytest.raises(InvalidArgument, match="needs a function"):
        run(fn)


def test_a_function_without_a_place_for_comm():
    with pytest.raises(InvalidArgument, match=r"def hello\(comm"):
        run(hello)


def hello():
    return None


def test_arguments_that_the_function_does_not_take():
    with pytest.raises(InvalidArgument, match="too many positional"):
        run(rank_of, 2, args=(1,))


def test_args_that_are_no_tuple():
    with pytest.raises(InvalidArgument, match=r"args=\(value,\)"):
        run(lambda comm, x: x, 2, args=5)


@pytest.mark.parametrize("timeout_s", [0, -1, "60", float("inf"), float("nan"), True])
def test_a_time_limit_that_is_no_positive_number(timeout_s):
    with pytest.raises(InvalidArgument, match="timeout_s"):
        run(rank_of, 2, timeout_s=timeout_s)


def test_an_unknown_backend():
    with pytest.raises(InvalidArgument, match="'gloo'"):
        run(rank_of, 2, backend="mpi")


def test_nccl_without_a_gpu_for_each_rank():
    with pytest.raises(InvalidArgument, match="needs a GPU for every rank"):
        run(rank_of, 64, backend="nccl")


def test_sharing_a_gpu_needs_nccl():
    with pytest.raises(InvalidArgument, match="add backend='nccl', or leave"):
        run(rank_of, 2, share_gpu=True)


@pytest.mark.parametrize(
    "fault",
    [
        "kill",
        Kill(4, 1),
        Kill(-1, 1),
        Kill(True, 1),
        Hang(0, -1),
        Hang(0, 1.5),
        Slow(0, 0.5),
    ],
)
def test_a_fault_that_fits_no_rank_or_step(fault):
    with pytest.raises(InvalidArgument):
        run(rank_of, 4, faults=[fault])


def test_an_argument_that_cannot_travel_is_named():
    with pytest.raises(NotSerializable, match=r"args\[0\]\['lock'\]\[1\] is a lock"):
        run(lambda comm, x: x, 2, args=({"lock": [1, threading.Lock()]},))


def test_a_variable_that_cannot_travel_is_named():
    guard = threading.Lock()

    def uses_guard(comm):
        return guard

    with pytest.raises(NotSerializable, match="`guard`, used by `uses_guard`"):
        run(uses_guard, 2)
