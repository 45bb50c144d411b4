"""Chunks of a tensor, one per rank, and buffers to receive into."""

import itertools

import numpy as np

from distlab.errors import InvalidArgument

__all__ = [
    "chunk_edges",
    "chunk_lengths",
    "copy_of",
    "room_for",
    "room_like",
    "split",
    "why_not_flat",
]


def chunk_lengths(count: int, parts: int) -> list[int]:
    """Return the lengths of `parts` chunks of `count` elements, the longer ones first.

    They differ by one at most, and sum to `count`:

        >>> chunk_lengths(10, 4)
        [3, 3, 2, 2]
    """
    return [count // parts + (index < count % parts) for index in range(parts)]


def chunk_edges(count: int, parts: int) -> list[int]:
    """Return the start of each chunk, and the end of the last.

        >>> chunk_edges(10, 4)
        [0, 3, 6, 8, 10]

    Chunks a to b - 1 lie between edges a and b, next to each other.
    """
    return list(itertools.accumulate(chunk_lengths(count, parts), initial=0))


def room_like(tensor):
    """Return a tensor or array of the same shape and type, to receive into."""
    if isinstance(tensor, np.ndarray):
        return np.empty_like(tensor)
    return tensor.new_empty(tensor.shape)


def room_for(tensor, count: int):
    """Return a flat tensor or array of `count` elements of the same type."""
    if isinstance(tensor, np.ndarray):
        return np.empty(count, tensor.dtype)
    return tensor.new_empty(count)


def copy_of(tensor):
    """Return a copy that has its own memory."""
    copy = room_like(tensor)
    copy[...] = tensor
    return copy


def split(tensor, parts: int) -> list:
    """Return `parts` flat views into a contiguous tensor or array, in order.

    Writing to a view writes to the tensor. Some views are empty if it is shorter.

    Raises: InvalidArgument if the tensor is not contiguous: views would be copies.
    """
    reason = why_not_flat(tensor)
    if reason:
        raise InvalidArgument(reason)
    flat = tensor.reshape(-1)
    edges = chunk_edges(len(flat), parts)
    return [flat[start:end] for start, end in itertools.pairwise(edges)]


def why_not_flat(tensor) -> str:
    """Return a sentence if a thing has no flat view that writes to it, else ""."""
    if isinstance(tensor, np.ndarray):
        contiguous = tensor.flags.c_contiguous
    elif hasattr(tensor, "is_contiguous"):
        contiguous = tensor.is_contiguous()
    else:
        kind = type(tensor).__name__
        return f"a collective works on a tensor or array, and got {kind}."
    if not contiguous:
        return (
            "this tensor is not contiguous in memory, so it has no flat chunks. "
            "Take tensor.contiguous() first (for an array, numpy.ascontiguousarray)."
        )
    return ""
