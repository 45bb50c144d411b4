"""Payloads of messages between simulated ranks: arrays, tensors, and pickled objects.

torch is never imported here: any object with `nbytes`, `dtype` and `shape` that takes
assignment to a slice is passed as it is.
"""

from distlab.errors import InvalidArgument

__all__ = ["Box", "Parcel", "Payload", "check_cargo", "described", "land"]


class Parcel:
    """A pickled object in a message."""

    dtype = "object"

    def __init__(self, data: bytes):
        self.data, self.nbytes = data, len(data)


class Box:
    """A receive buffer for a pickled object of any size; `data` is the pickle."""

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
        """Accept a message: there is nothing to copy."""


def land(thing, room) -> None:
    """Copy a message into its receive buffer of the same size and dtype."""
    if getattr(thing, "is_meta", False):  # a shape without numbers
        return
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
    """Check that an object can be sent.

    Raises: InvalidArgument if it has no `nbytes` or `dtype`.
    """
    if not hasattr(thing, "nbytes") or not hasattr(thing, "dtype"):
        raise InvalidArgument(
            "Comm carries torch tensors and numpy arrays, and got "
            f"{type(thing).__name__}. "
            "For other objects there are send_object and recv_object."
        )
