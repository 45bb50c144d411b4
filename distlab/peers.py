"""Checks of the peers, requests and groups that a rank names in a Comm call."""

import operator
from collections.abc import Sequence

from distlab.errors import InvalidArgument

__all__ = ["check_color", "check_not_alone", "check_peer", "check_requests"]
__all__ += ["Disagreement", "check_group_name", "in_new_group"]

_LARGEST = 2**62


class Disagreement(Exception):
    """Different collectives entered by ranks; their supervisor reports which."""


def check_peer(peer: int, name: str, rank: int, world_size: int) -> None:
    """Refuse a `peer`, given as the argument `name`, that `rank` cannot exchange with.

    Raises: InvalidArgument.
    """
    if not _is_whole(peer) or not 0 <= peer < world_size:
        raise InvalidArgument(
            f"{name}={peer!r} is no rank here: ranks go from 0 to "
            f"{world_size - 1}. In a ring, the next rank is "
            "(comm.rank + 1) % comm.world_size."
        )
    if peer == rank:
        raise InvalidArgument(
            f"rank {rank} sends to or receives from itself ({name}={peer}); "
            "a message needs two ranks."
        )


def check_not_alone(world_size: int) -> None:
    """Refuse to wait for a message of any rank in a world of one rank.

    Raises: InvalidArgument.
    """
    if world_size == 1:
        raise InvalidArgument("recv_any: a world of one rank has no other that sends.")


def check_requests(requests: Sequence) -> None:
    """Refuse to wait for one of no requests.

    Raises: InvalidArgument.
    """
    if not requests:
        raise InvalidArgument(
            "wait_any waits for one of several requests, and got none. It wants those "
            "of isend, irecv and start that have not been waited for."
        )


def check_color(color: int | None, key: int | None) -> None:
    """Refuse a color or key that `split` cannot sort ranks by.

    Raises: InvalidArgument.
    """
    for name, value in (("color", color), ("key", key)):
        whole = value is None or (_is_whole(value) and abs(value) < _LARGEST)
        if not whole:
            raise InvalidArgument(
                f"{name} of a split is a whole number, not {value!r}. The ranks of one "
                "color make a group, in the order of their keys; a rank of color "
                "None is in no group. To make pairs: comm.split(comm.rank // 2)."
            )


def check_group_name(name: str) -> None:
    """Refuse a group name that the recorder could not write down.

    Raises: InvalidArgument.
    """
    if name and not (isinstance(name, str) and name.isidentifier()):
        raise InvalidArgument(
            f"{name!r} cannot name a group: a name is letters, digits and _, as 'tp'."
        )


def in_new_group(
    color: int, said: Sequence[tuple[int, int]], ranks: Sequence[int]
) -> list[int]:
    """Return the ranks in the new group of a color, in the order of their keys.

    said: the (color, key) of each rank of the old group. ranks: those ranks.
    """
    places = [place for place, (other, _) in enumerate(said) if other == color]
    return [ranks[p] for p in sorted(places, key=lambda p: (said[p][1], p))]


def _is_whole(peer):
    """Return True if `peer` is an integer of Python or numpy; a bool is neither."""
    try:
        operator.index(peer)
    except TypeError:
        return False
    return type(peer).__name__ not in ("bool", "bool_", "Tensor")
