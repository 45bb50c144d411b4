"""Memory by kind, measured: the bytes of live tensors.

    parameters, gradients, optimizer state     tensors of the module and the optimizer
    activations                                tensors that autograd keeps for backward

A view has no bytes of its own: storages are counted, each once.
"""

from collections.abc import Iterable

import torch
from torch import nn

from distlab.cost.zero import ModelStates
from distlab.train.fsdp import FullySharded
from distlab.train.optimizer_steps import MasterWeights
from distlab.train.zero import ZeroOptimizer

__all__ = ["SavedForBackward", "measured", "optimizer_bytes", "storage_bytes"]


def measured(
    module: nn.Module, optimizer, sharded: FullySharded | None = None
) -> ModelStates:
    """Return the bytes that this rank holds now for a module that is trained.

    optimizer: a torch optimizer, `MasterWeights`, `ZeroOptimizer` or a combination of
        these. sharded: the `FullySharded` of the module, if there is one.
    Buffers of unfinished communication, which a backward ends, are not counted.
    """
    groups = []
    if sharded is not None:
        groups = sharded.groups
    elif isinstance(optimizer, ZeroOptimizer):
        groups = optimizer.groups
    parameters = [*module.parameters(), *(group.shard for group in groups)]
    parameters += [group.full for group in groups]
    return ModelStates(
        storage_bytes(parameters),
        storage_bytes(tensor.grad for tensor in [*parameters, *_masters(optimizer)]),
        optimizer_bytes(optimizer),
    )


def storage_bytes(tensors: Iterable[torch.Tensor | None]) -> int:
    """Return the bytes of the storages under these tensors, each counted once."""
    storages = {}
    for tensor in tensors:
        if tensor is not None:
            storage = tensor.untyped_storage()
            storages[storage.data_ptr(), storage.nbytes()] = storage.nbytes()
    return sum(storages.values())


def optimizer_bytes(optimizer) -> int:
    """Return the bytes of an optimizer's state, without its counts of steps.

    Master weights are state, as is the state of their optimizer.
    """
    masters = storage_bytes(_masters(optimizer))
    while isinstance(optimizer, ZeroOptimizer | MasterWeights):
        optimizer = optimizer.optimizer
    state = [t for each in optimizer.state.values() for t in each.values()]
    return masters + storage_bytes(t for t in state if torch.is_tensor(t) and t.dim())


def _masters(optimizer):
    if isinstance(optimizer, ZeroOptimizer):
        optimizer = optimizer.optimizer
    return optimizer.masters if isinstance(optimizer, MasterWeights) else []


class SavedForBackward:
    """A counter of the bytes that autograd saves for backward while the block runs.

        with SavedForBackward(model.parameters()) as kept:
            loss = model(x)
        kept.nbytes

    but: tensors that exist anyway, such as parameters, which are not counted.
    """

    def __init__(self, but: Iterable[torch.Tensor] = ()):
        self._known = {tensor.untyped_storage().data_ptr() for tensor in but}
        self._kept = {}

    @property
    def nbytes(self) -> int:
        """The bytes that were kept, each storage once."""
        return sum(storage.nbytes() for storage in self._kept.values())

    def __enter__(self):
        self._hooks = torch.autograd.graph.saved_tensors_hooks(self._keep, lambda t: t)
        self._hooks.__enter__()
        return self

    def __exit__(self, *exception):
        self._hooks.__exit__(*exception)
        del self._hooks  # they hold this: a cycle, and all saved tensors

    def _keep(self, tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in self._known:
            self._kept[storage.data_ptr()] = storage  # held, so that no address returns
        return tensor.detach()  # an output itself would be in a cycle with its graph
