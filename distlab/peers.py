"""Whom a rank may name as the other side of a message."""

import operator
from collections.abc import Sequence

from distlab.errors import InvalidArgument

__all__ = ["check_not_alone", "check_peer", "check_requests"]


def check_peer(peer: int, name: str, rank: int, world_size: int) -> None:
    """Refuse a `peer`, given as the argument `name`, that `rank` cannot talk to.

    Raises: InvalidArgument.
    """
    if not _is_whole(peer) or not 0 <= peer < world_size:
        raise InvalidArgument(
            f"{name}={peer!r} is no rank of this world: ranks go from 0 to "
            f"{world_size - 1}. In a ring, the next rank is "
            "(comm.rank + 1) % comm.world_size."
        )
    if peer == rank:
        raise InvalidArgument(
            f"rank {rank} sends to or receives from itself ({name}={peer}); "
            "a message needs two ranks."
        )


def check_not_alone(world_size: int) -> None:
    """Refuse to wait for a message of any rank where there is no other.

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


def _is_whole(peer):
    """Whether `peer` is an integer of Python or numpy; a bool is neither."""
    try:
        operator.index(peer)
    except TypeError:
        return False
    return type(peer).__name__ not in ("bool", "bool_", "Tensor")
