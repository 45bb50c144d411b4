"""What travels between simulated ranks: arrays, tensors, and pickled objects.

torch is never imported here: whatever has `nbytes`, `dtype` and `shape` and takes
assignment to a slice is carried as it is.
"""

from distlab.errors import InvalidArgument

__all__ = ["Box", "Parcel", "Payload", "check_cargo", "described", "land"]


class Parcel:
    """A pickled object on its way."""

    dtype = "object"

    def __init__(self, data: bytes):
        self.data, self.nbytes = data, len(data)


class Box:
    """Room for a pickled object of any size; `data` is what arrived."""

    dtype = "object"
    nbytes = -1
    data = b""


class Payload:
    """A message of which only the size counts: `nbytes`, and no content.

    So a simulated rank can send gigabytes without having them.
    """

    dtype = "nothing"

    def __init__(self, nbytes: int):
        self.nbytes = int(nbytes)

    def __setitem__(self, where, what):
        """Arrive: there is nothing to copy."""


def land(thing, room) -> None:
    """Copy a message into the room for it, which has as many numbers of one type."""
    try:
        room[...] = thing
    except (ValueError, RuntimeError):  # the same numbers in another shape
        room[...] = thing.reshape(room.shape)


def described(thing) -> str:
    """Return size and type in words."""
    if isinstance(thing, Parcel | Box):
        return "an object"
    return f"{thing.nbytes} bytes of {str(thing.dtype).removeprefix('torch.')}"


def check_cargo(thing) -> None:
    """Refuse what cannot travel.

    Raises: InvalidArgument.
    """
    if not hasattr(thing, "nbytes") or not hasattr(thing, "dtype"):
        raise InvalidArgument(
            "Comm carries torch tensors and numpy arrays, and got "
            f"{type(thing).__name__}. "
            "For other objects there are send_object and recv_object."
        )
