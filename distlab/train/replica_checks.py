"""Checks that all ranks have the same model, before gradients are added by position."""

import hashlib
from collections.abc import Callable

import torch
from torch import nn

from distlab.collectives import tree_broadcast
from distlab.errors import InvalidArgument

__all__ = [
    "check_same_model",
    "check_same_values",
    "copy_from_rank_0",
    "judged_by_rank_0",
]


def judged_by_rank_0(comm, mine: object, judge: Callable) -> object:
    """Return on every rank the result of `judge`, called on rank 0 with all values.

    judge: a function of the list of all ranks' `mine`.
    Cost: a message to rank 0 and one back, for each other rank.
    """
    peers = range(1, comm.world_size)
    if comm.rank > 0:
        comm.send_object(mine, 0)
        return comm.recv_object(0)
    verdict = judge([mine, *(comm.recv_object(peer) for peer in peers)])
    for peer in peers:
        comm.send_object(verdict, peer)
    return verdict


def check_same_model(comm, module: nn.Module) -> None:
    """Compare parameters' names, shapes, dtypes and requires_grad with rank 0's.

    Raises: InvalidArgument on every rank, naming the first rank and parameter that
        differ from rank 0.
    """
    found = judged_by_rank_0(comm, _described(module), _first_other_model)
    if found:
        raise InvalidArgument(found)


def check_same_values(comm, module: nn.Module) -> None:
    """Compare the values of all parameters with rank 0's, by a checksum of each.

    Buffers may differ: the statistics of batch norm are each rank's own.

    Raises: InvalidArgument on every rank, naming the first rank and parameter that
        differ from rank 0.
    """
    mine = {name: _digest(p) for name, p in module.named_parameters()}
    found = judged_by_rank_0(comm, mine, _first_other_values)
    if found:
        raise InvalidArgument(found)


def copy_from_rank_0(comm, module: nn.Module) -> None:
    """Broadcast the values of rank 0's parameters and buffers."""
    for tensor in [*module.parameters(), *module.buffers()]:
        values = tensor.detach()
        contiguous = values.contiguous()
        tree_broadcast(comm, contiguous)
        if contiguous.data_ptr() != values.data_ptr():
            values.copy_(contiguous)


def _described(module):
    return [
        (name, tuple(p.shape), str(p.dtype).removeprefix("torch."), p.requires_grad)
        for name, p in module.named_parameters()
    ]


def _first_other_model(models):
    pairs = (_differs(models[0], m, p) for p, m in enumerate(models) if m != models[0])
    return next(pairs, "")


def _first_other_values(models):
    for peer, model in enumerate(models):
        other = [n for n, digest in model.items() if models[0].get(n) != digest]
        if other:
            more = f", and so have {len(other) - 1} more" if len(other) > 1 else ""
            return (
                f"{other[0]} has other values on rank {peer} than on rank 0{more}. "
                "Ranks that step the same gradients from other values train other "
                "models."
            )
    return ""


def _digest(parameter):
    values = parameter.detach().cpu().contiguous().flatten()
    return hashlib.sha256(values.view(torch.uint8).numpy()).hexdigest()


def _differs(mine, theirs, peer):
    for ours, other in zip(mine, theirs, strict=False):
        if ours != other:
            return (
                f"the models differ: on rank 0 {_in_words(ours)}, on rank {peer} "
                f"{_in_words(other)}. All ranks have to build the same model."
            )
    longer, rank = (mine, 0) if len(mine) > len(theirs) else (theirs, peer)
    extra = longer[min(len(mine), len(theirs))]
    return (
        f"the models differ: only rank {rank} has {_in_words(extra)}, of rank 0 and "
        f"rank {peer}. All ranks have to build the same model."
    )


def _in_words(parameter):
    name, shape, dtype, trained = parameter
    frozen = "" if trained else ", frozen"
    return f"{name} {dtype}{list(shape)}{frozen}"
