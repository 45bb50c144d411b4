"""Fully sharded data parallel, ZeRO 3: a layer's parameters exist while it is at work.

    forward    gather 1 │ layer 1 │ free 1          backward   gather 2 │ layer 2 │ ─┐
                  gather 2 ┊ layer 2 │ free 2                    reduce-scatter, free 2

Each unit, such as a block of a transformer, is one flat tensor. Between uses it has no
memory: its storage is resized to nothing, and what autograd saved for backward are
views of it that are filled again in time. While one unit computes, the next one is
gathered.

Source: Zhao et al., "PyTorch FSDP: experiences on scaling fully sharded data parallel"
(2023).
"""

import itertools

from torch import nn

from distlab.train.sameness import check_same_model, copy_from_rank_0
from distlab.train.shards import FlatGroup, all_gather_parts, mean_part

__all__ = ["FullySharded"]


class FullySharded:
    """A module whose parameters, gradients and optimizer state are shared out.

        sharded = FullySharded(comm, model, Block)
        optimizer = torch.optim.Adam(sharded.shards)
        model.loss(x).backward()
        sharded.finish_backward()
        optimizer.step()

    unit: a class; each submodule of it is a unit, and the rest of the module is one.
    prefetch: whether the next unit is gathered while one computes.

    Raises: InvalidArgument for models that differ between ranks.
    Cost: 3(n-1)/n times the parameters' bytes per rank and step: gathered in forward
        and in backward, and reduce-scattered.
    """

    def __init__(self, comm, module: nn.Module, unit: type, *, prefetch: bool = True):
        check_same_model(comm, module)
        copy_from_rank_0(comm, module)
        inner = [each for each in module.modules() if isinstance(each, unit)]
        order = [*inner, module]
        self.units = [_Unit(comm, each, order) for each in order]
        self.units = [each for each in self.units if each.group is not None]
        self.shards = [each.shard for each in self.units]
        blocks = [each for each in self.units if each.module is not module]
        if prefetch:
            for one, following in itertools.pairwise(blocks):
                one.after, following.before = following, one

    def finish_backward(self) -> None:
        """Wait until every gradient under way has arrived at its shard."""
        for each in self.units:
            each.settle()


class _Unit:
    """One module's own parameters, without those of the units inside it."""

    after = before = None

    def __init__(self, comm, module, others):
        self.comm, self.module = comm, module
        self.homes = _own_parameters(module, [m for m in others if m is not module])
        named = [(name, owner._parameters[name]) for owner, name in self.homes]
        self.group = FlatGroup(comm, named) if named else None
        if self.group is None:
            return
        full = self.group.full
        self.shard = nn.Parameter(self.group.own(full).clone())
        self.full = full.requires_grad_()
        self.full.register_post_accumulate_grad_hook(self._reduce)
        self._arriving = self._leaving = None
        for owner, name in self.homes:
            del owner._parameters[name]
        self._free()
        module.register_forward_pre_hook(self._before_forward)
        module.register_forward_hook(self._after_forward)

    def start_gathering(self) -> None:
        """Begin to fetch the others' parts, unless that has begun."""
        if self._arriving is None:
            flat = self.full.data
            flat.untyped_storage().resize_(flat.nbytes)
            self.group.own(flat).copy_(self.shard.detach())
            self._arriving = self.comm.start(all_gather_parts, flat)

    def settle(self) -> None:
        """Wait for the mean gradient of this rank's part, and keep it in the shard."""
        if self._leaving is not None:
            arrived, self._leaving = self._leaving.wait(), None
            if self.shard.grad is None:
                self.shard.grad = arrived
            else:
                self.shard.grad += arrived

    def _gather(self):
        self.start_gathering()
        self._arriving.wait()

    def _free(self):
        # A GPU may still be reading; whatever gets this memory next queues behind that.
        # The gather, on its own stream, has ended: it was waited for.
        self._arriving = None
        self.full.data.untyped_storage().resize_(0)

    def _before_forward(self, module, inputs):
        self._gather()
        if self.after:
            self.after.start_gathering()
        views = self.group.views(self.full)
        for (owner, name), view in zip(self.homes, views, strict=True):
            setattr(owner, name, view)

    def _after_forward(self, module, inputs, output):
        self._free()
        if output.requires_grad:
            output.register_hook(self._before_backward)

    def _before_backward(self, gradient):
        self._gather()
        if self.before:
            self.before.start_gathering()

    def _reduce(self, full):
        gradient, full.grad = full.grad, None
        self._free()
        self.settle()
        self._leaving = self.comm.start(mean_part, gradient)


def _own_parameters(module, others):
    """Return (owner, name) of each parameter that belongs to no unit inside."""
    inside = {
        id(each)
        for other in others
        if _contains(module, other)
        for each in other.modules()
    }
    return [
        (owner, name)
        for owner in module.modules()
        if id(owner) not in inside
        for name in owner._parameters
        if owner._parameters[name] is not None
    ]


def _contains(module, other):
    return any(each is other for each in module.modules())
