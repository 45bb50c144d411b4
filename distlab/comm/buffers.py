"""Tensors and arrays as messages: checks before a transfer, and copies after it."""

from types import NoneType, SimpleNamespace

import torch

from distlab.errors import InvalidArgument

__all__ = ["Tensor", "carried", "filled", "refuse_overlap"]

try:
    import numpy as np
except ModuleNotFoundError:  # a small install: messages are tensors
    np = SimpleNamespace(ndarray=NoneType)

Tensor = torch.Tensor | np.ndarray


def carried(
    thing: Tensor, device: torch.device, rank: int, into: bool = False
) -> torch.Tensor:
    """Return a contiguous tensor to send from or, with `into`, receive into.

    Raises: InvalidArgument if `thing` is no tensor or array, or is on another device.
    """
    if isinstance(thing, np.ndarray):
        thing = _over_array(thing, into)
    elif not isinstance(thing, torch.Tensor):
        raise InvalidArgument(
            "Comm carries torch tensors and numpy arrays, and got "
            f"{type(thing).__name__}. "
            "For other objects there are send_object and recv_object."
        )
    if thing.device != device:
        raise InvalidArgument(
            f"this tensor is on {thing.device}, and messages of rank {rank} travel "
            f"from {device}. Move it there: tensor.to(comm.device)."
        )
    if thing.is_contiguous() and not thing.requires_grad:
        return thing
    return thing.detach().contiguous()


def _over_array(array, into):
    """Return a tensor over the array's memory, or over a copy where torch needs one."""
    if into and not array.flags.writeable:
        raise InvalidArgument("this array is read-only; recv needs one it can fill.")
    if not array.flags.writeable or any(stride < 0 for stride in array.strides):
        array = array.copy()
    return torch.from_numpy(array)


def refuse_overlap(outgoing: torch.Tensor, incoming: torch.Tensor) -> None:
    """Refuse to receive into memory that is being sent: it would be a race.

    Raises: InvalidArgument.
    """
    first, second = outgoing.data_ptr(), incoming.data_ptr()
    if not outgoing.nbytes or not incoming.nbytes:
        return
    if second < first + outgoing.nbytes and first < second + incoming.nbytes:
        raise InvalidArgument(
            "outgoing and incoming share memory, so what arrives could overwrite what "
            "is still being sent. Receive into a buffer of its own: "
            "torch.empty_like(incoming)."
        )


def filled(wanted: Tensor, buffer: torch.Tensor) -> Tensor:
    """Return `wanted`, filled with the message that arrived in `buffer`."""
    if isinstance(wanted, np.ndarray):
        received = buffer.numpy()
        if not np.shares_memory(wanted, received):
            wanted[...] = received
    elif wanted.data_ptr() != buffer.data_ptr():
        wanted.detach().copy_(buffer)
    return wanted
