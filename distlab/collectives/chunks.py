"""Cut a tensor into one chunk per rank."""

import numpy as np

from distlab.errors import InvalidArgument

__all__ = ["chunk_lengths", "room_like", "split"]


def chunk_lengths(count: int, parts: int) -> list[int]:
    """Return the lengths of `parts` chunks of `count` numbers, the longer ones first.

    They differ by one at most, and sum to `count`:

        >>> chunk_lengths(10, 4)
        [3, 3, 2, 2]
    """
    return [count // parts + (index < count % parts) for index in range(parts)]


def room_like(tensor):
    """Return a tensor or array of the same shape and type, to receive into."""
    if isinstance(tensor, np.ndarray):
        return np.empty_like(tensor)
    return tensor.new_empty(tensor.shape)


def split(tensor, parts: int) -> list:
    """Return `parts` flat views into a contiguous tensor or array, in order.

    Writing to a view writes to the tensor. Some views are empty if it is shorter.

    Raises: InvalidArgument if the tensor is not contiguous: views would be copies.
    """
    if not hasattr(tensor, "dtype") or not hasattr(tensor, "reshape"):
        raise InvalidArgument(
            f"a collective works on a tensor or array, and got {type(tensor).__name__}."
        )
    contiguous = getattr(tensor, "is_contiguous", lambda: tensor.flags.c_contiguous)
    if not contiguous():
        raise InvalidArgument(
            "this tensor is not contiguous in memory, so it has no flat chunks. "
            "Take tensor.contiguous() first (for an array, numpy.ascontiguousarray)."
        )
    flat, start, views = tensor.reshape(-1), 0, []
    for length in chunk_lengths(len(flat), parts):
        views.append(flat[start : start + length])
        start += length
    return views
