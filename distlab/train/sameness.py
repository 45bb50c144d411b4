"""Whether all ranks have the same model, before gradients are added up by position."""

from torch import nn

from distlab.collectives import tree_broadcast
from distlab.errors import InvalidArgument

__all__ = ["check_same_model", "copy_from_rank_0"]


def check_same_model(comm, module: nn.Module) -> None:
    """Compare names, shapes, types and whether they are trained with rank 0's.

    Raises: InvalidArgument on every rank, naming the first rank and parameter that
        differ from rank 0.
    """
    mine = _described(module)
    peers = range(1, comm.world_size)
    if comm.rank == 0:
        theirs = {peer: comm.recv_object(peer) for peer in peers}
        found = next(
            (_differs(mine, theirs[p], p) for p in peers if theirs[p] != mine), ""
        )
        for peer in peers:
            comm.send_object(found, peer)
    else:
        comm.send_object(mine, 0)
        found = comm.recv_object(0)
    if found:
        raise InvalidArgument(found)


def copy_from_rank_0(comm, module: nn.Module) -> None:
    """Give every rank the values of rank 0's parameters and buffers."""
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
