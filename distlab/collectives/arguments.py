"""Checks of a collective's arguments, before its first message.

A rank that raises after its first message leaves the others blocked in theirs; raised
here, the mistake is the first failure of the job, and is reported with its rank.
"""

import itertools
import math
import operator

import numpy as np

from distlab.collectives.chunks import room_for, why_not_flat
from distlab.errors import InvalidArgument

__all__ = [
    "check_at_least",
    "check_root",
    "checked_lengths",
    "flat_pieces",
    "flat_view",
    "rooms_for",
    "rooms_of",
]


def flat_view(comm, tensor, op=None):
    """Return a flat view of the tensor, which writes to it.

    op: the reduction that the tensor must suit, if there is one.

    Raises: InvalidArgument, also for an array that cannot be written to.
    """
    reason = why_not_flat(tensor)
    if not reason and isinstance(tensor, np.ndarray) and not tensor.flags.writeable:
        reason = "this array is read-only, and a collective works in place."
    if reason:
        raise InvalidArgument(f"rank {comm.rank}: {reason}")
    if op is not None:
        _check_reduction(comm, op, tensor)
    if not isinstance(tensor, np.ndarray):
        tensor = tensor.detach()  # a parameter is changed, not differentiated
    return tensor.reshape(-1)


def _check_reduction(comm, op, tensor):
    if not all(hasattr(op, part) for part in ("check", "combine", "finish")):
        raise InvalidArgument(
            f"rank {comm.rank}: op is a reduction, such as SUM or MAX from "
            f"distlab.collectives, and got {op!r}."
        )
    try:
        op.check(tensor)
    except InvalidArgument as error:
        raise InvalidArgument(f"rank {comm.rank}: {error}") from None


def check_root(comm, root: int) -> None:
    """Refuse a root that is no rank here.

    Raises: InvalidArgument.
    """
    whole = type(root) is int or isinstance(root, np.integer)  # a bool is neither
    if not whole or not 0 <= root < comm.world_size:
        raise InvalidArgument(
            f"rank {comm.rank}: root={root!r} is no rank here: ranks go from "
            f"0 to {comm.world_size - 1}."
        )


def check_at_least(least: int, comm, name: str, number: int) -> None:
    """Refuse an argument of that name that is no whole number, or too small.

    Raises: InvalidArgument.
    """
    if type(number) is not int or number < least:
        raise InvalidArgument(
            f"rank {comm.rank}: {name} is a whole number from {least} up, and got "
            f"{number!r}."
        )


def flat_pieces(comm, pieces, *, unequal: bool = False, advice: str = "") -> list:
    """Return a flat view of each of the n tensors of a list, one for every rank.

    unequal: True if they may differ in length, along dim 0.
    advice: a sentence for the error about tensors that differ in length but may not.

    Raises: InvalidArgument if they are not n, or not all of one shape and type.
    """
    n = comm.world_size
    if not isinstance(pieces, list | tuple) or len(pieces) != n:
        given = len(pieces) if isinstance(pieces, list | tuple) else type(pieces)
        raise InvalidArgument(
            f"rank {comm.rank}: there must be a list of {n} tensors, one for each "
            f"rank, and got {getattr(given, '__name__', given)}."
        )
    views = [flat_view(comm, piece) for piece in pieces]
    kinds = {(type(p), str(p.dtype), tuple(p.shape)) for p in pieces}
    rows = {(kind, type_, shape[1:] if shape else None) for kind, type_, shape in kinds}
    if len(rows if unequal else kinds) > 1 or (unequal and pieces[0].shape == ()):
        shown = sorted(f"{type_} {list(shape)}" for _, type_, shape in kinds)
        wanted = "one type, and one shape after dim 0" if unequal else "one shape"
        wanted += "" if unequal else " and type"
        raise InvalidArgument(
            f"rank {comm.rank}: the tensors of a list must have {wanted}, and got "
            f"{' and '.join(shown)}.{advice if len(rows) == 1 else ''}"
        )
    return views


def checked_lengths(comm, lengths, own: int) -> list[int]:
    """Return the number of rows from each rank, as a list of n ints.

    own: the rows that this rank keeps.

    Raises: InvalidArgument if they are not n whole numbers, or this rank's is not own.
    """
    try:
        found = [operator.index(length) for length in lengths]
    except TypeError:
        found = []
    if len(found) != comm.world_size or min(found) < 0 or found[comm.rank] != own:
        raise InvalidArgument(
            f"rank {comm.rank}: lengths are {comm.world_size} whole numbers, how many "
            f"rows come from each rank, here {own} from rank {comm.rank} itself, and "
            f"got {lengths!r}."
        )
    return found


def rooms_for(tensor, count: int) -> tuple:
    """Return a flat buffer for `count` such tensors, and a shaped view for each."""
    size = tensor.reshape(-1).shape[0]
    whole = room_for(tensor, count * size)
    shaped = [
        whole[place * size : (place + 1) * size].reshape(tensor.shape)
        for place in range(count)
    ]
    return whole, shaped


def rooms_of(tensor, lengths: list[int]) -> list:
    """Return contiguous buffers for rows like the tensor's, one for each length."""
    row = tensor.shape[1:]
    edges = [0, *itertools.accumulate(length * math.prod(row) for length in lengths)]
    whole = room_for(tensor, edges[-1])
    return [
        whole[start:end].reshape((length, *row))
        for length, (start, end) in zip(lengths, itertools.pairwise(edges), strict=True)
    ]
