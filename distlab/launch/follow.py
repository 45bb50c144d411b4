"""`follow`: a collective run on inputs that identify each rank's contribution."""

import operator
from collections.abc import Callable
from typing import Any

from distlab.calls.serialize import check_function
from distlab.errors import InvalidArgument
from distlab.launch.machine import check_world_size
from distlab.launch.report import Report
from distlab.launch.world import in_turn
from distlab.simulated import SimulatedComm
from distlab.trace import BASE, FIRST_PLACE, Shares

__all__ = ["follow"]

_FLOAT32, _FLOAT64 = 8, 17  # ranks whose octal digits fit the mantissa
_MOST_NUMBERS = 4096


def follow(
    fn: Callable,
    world_size: int = 4,
    *,
    numbers: int | None = None,
    holds: Callable[[int, int], bool] | None = None,
    timeout_s: float = 15,
    **how: Any,
) -> Report:
    """Call `fn(comm, tensor)` on ranks; the trace has the contributions in each place.

    Every element of rank r is 8**r, so that the octal digits of each sum count the
    contributions in it; a second run, with elements that encode their positions, finds
    the chunk in each message. Pictures of the trace show both.

    numbers: length of the tensor, float32 up to 8 ranks, else float64; 10 a rank.
    holds: (rank, chunk) -> whether that rank begins with its contribution to that
        chunk, of one chunk per rank, and not with zeros; by default each rank has all.
        For a broadcast: lambda rank, chunk: rank == 0.
    timeout_s: the time limit of the function.
    how: the ranks are real ones, unless there is a `fabric`, as in `run`.

    Raises: as `run` does, and InvalidArgument for more than 17 ranks, whose digits no
    float64 holds, or more than 4096 numbers.
    """
    check_function(fn, (None,))
    world_size = check_world_size(world_size)
    numbers = _check(world_size, 10 * world_size if numbers is None else numbers)
    there = _there(world_size, numbers, holds)
    each = [(fn, there, by_place) for by_place in (False, True)]
    how = {"timeout_s": timeout_s} | how
    report, places = in_turn(_probe, world_size, each, **how)
    report.trace.shares = Shares.read(
        [seen for _, seen in report.results], [seen for _, seen in places.results]
    )
    report.results = [returned for returned, _ in report.results]
    return report


def _check(world_size, numbers):
    try:
        numbers = operator.index(numbers)
    except TypeError:
        numbers = 0
    if not 0 < numbers <= _MOST_NUMBERS:
        raise InvalidArgument(
            f"numbers is how long the tensor is, from 1 to {_MOST_NUMBERS}: follow "
            "looks at each of them at each step. For example: follow(fn, 4, numbers=40)"
        )
    if world_size > _FLOAT64:
        raise InvalidArgument(
            f"follow tells the shares of up to {_FLOAT64} ranks apart, and got "
            f"{world_size}: one float64 has no room for more digits. Fewer ranks show "
            "the same algorithm."
        )
    return numbers


def _there(world_size, numbers, holds):
    """Return [rank][position] -> True if the rank begins with its element there."""
    ranks, (short, longer) = range(world_size), divmod(numbers, world_size)
    lengths = [short + (chunk < longer) for chunk in ranks]
    return [
        [
            holds is None or bool(holds(rank, chunk))
            for chunk in ranks
            for _ in range(lengths[chunk])
        ]
        for rank in ranks
    ]


def _probe(comm, fn, there, by_place):
    import torch  # here, because only ranks may load it

    from distlab.comm.snapshot_comm import WatchedComm
    from distlab.simulated.comm import WatchedSimulatedComm

    dtype = torch.float32 if comm.world_size <= _FLOAT32 else torch.float64
    places = enumerate(there[comm.rank], FIRST_PLACE)
    weight = BASE**comm.rank
    numbers = [held * (place if by_place else weight) for place, held in places]
    tensor = torch.tensor(numbers, dtype=dtype, device=comm.device)
    simulated = isinstance(comm, SimulatedComm)
    watched = (WatchedSimulatedComm if simulated else WatchedComm)(comm, tensor)
    returned = fn(watched, tensor)
    watched.look()
    return returned, {"held": watched.held, "sent": watched.sent}
