"""Fully sharded data parallel, ZeRO 3: a layer's parameters exist while it computes.

    forward    gather 1 │ layer 1 │ free 1          backward   gather 2 │ layer 2 │ ─┐
                  gather 2 ┊ layer 2 │ free 2                    reduce-scatter, free 2

Each unit, such as a block of a transformer, is one flat tensor. Between uses it has no
memory: its storage is resized to zero (reshard), and the tensors that autograd saved
for backward are views of it that are filled again in time. While one unit computes,
the next one is gathered (prefetch).

Source: Zhao et al., "PyTorch FSDP: experiences on scaling fully sharded data parallel"
(2023).
"""

import itertools
from collections.abc import Callable

import torch
from torch import nn
from torch.utils._pytree import tree_leaves

from distlab.collectives import AVERAGE, ring_all_reduce
from distlab.errors import InvalidArgument
from distlab.train.parameter_checksums import ParameterWatch
from distlab.train.replica_checks import check_same_model, copy_from_rank_0
from distlab.train.shards import (
    FlatGroup,
    add_to_gradient,
    all_gather_parts,
    at_the_end_of_backward,
    first_names,
    mean_part,
)

__all__ = ["FullySharded", "Unit"]


class FullySharded:
    """A module whose parameters, gradients and optimizer state are sharded.

        sharded = FullySharded(comm, model, Block)
        optimizer = torch.optim.Adam(sharded.shards)
        model.loss(x).backward()
        optimizer.step()

    unit: a class; each submodule of it is a unit, and the rest of the module is one.
    prefetch: True to gather the next unit while one computes.
    replicas: with it, comm shards one copy of the model of several, and replicas is the
        Comm among the ranks that hold the same shard of each: the two dimensions of a
        mesh. Shards' gradients are averaged over it. This is hybrid sharding (HSDP).
    gather: a function of (comm, flat) that fills a unit's parameters, of which each
        rank has its own shard; `compression.quantized_gather` sends fewer bytes.
    names: the first name of every parameter, by each name that it has.

    Frozen parameters stay whole, on every rank. Backwards before a step add up.

    Raises: InvalidArgument for models that differ between ranks, and for a parameter
        that two units share.
    Cost: 3(n-1)/n times the parameters' bytes per rank and step: gathered in forward
        and in backward, and reduce-scattered; as much again for every further backward.
        Over m replicas 2(m-1)/m times the shard's bytes in addition.
    """

    def __init__(
        self,
        comm,
        module: nn.Module,
        unit: type,
        *,
        prefetch: bool = True,
        gather: Callable = all_gather_parts,
        replicas=None,
    ):
        for each in filter(None, (comm, replicas)):
            check_same_model(each, module)
            copy_from_rank_0(each, module)
        self.comm, self.module = comm, module
        first_name = {p: name for name, p in module.named_parameters()}
        self.names = first_names(module)
        inner = [each for each in module.modules() if isinstance(each, unit)]
        order = [*inner, module]
        homes = {each: _own_parameters(each, order) for each in order}
        _refuse_shared(homes, first_name)
        self.units = [
            Unit(comm, each, own, first_name, gather, replicas)
            for each, own in homes.items()
            if own
        ]
        self._ends = False
        module.register_forward_hook(self._after_forward)
        for each in self.units:
            each.full.register_post_accumulate_grad_hook(self._in_backward)
        self.groups = [each.group for each in self.units]
        self.shards = [each.shard for each in self.units]
        self.watch = ParameterWatch(
            comm, {g.shard: g.names_in_shard() for g in self.groups}
        )
        blocks = [each for each in self.units if each.module is not module]
        if prefetch:
            for one, following in itertools.pairwise(blocks):
                one.after, following.before = following, one

    def _after_forward(self, module, inputs, output):
        # Backward reaches these tensors first; a gradient may be computed in a nested
        # backward, of a block that is recomputed.
        for each in _with_gradient(output):
            each.register_hook(self._in_backward)

    def _in_backward(self, tensor):
        if not self._ends:
            self._ends = True
            at_the_end_of_backward(self._end_backward)

    def _end_backward(self):
        self._ends = False
        for each in self.units:
            each.settle()
            each.free()  # prefetched for a backward that did not reach it

    def accept_changes(self) -> None:
        """Accept shards that were changed on all ranks, not by an optimizer."""
        self.watch.forget()


class Unit:
    """One module's own parameters, without those of the units inside it.

    homes: for each parameter its attributes, (module, name), which forward reads.
    full: all of them in one tensor, without memory between uses. shard: this rank's
    shard. after, before: the units to prefetch in forward and in backward.
    """

    after = before = None

    def __init__(self, comm, module, own, names, gather, replicas=None):
        self.comm, self.module, self.gather = comm, module, gather
        self.replicas = replicas
        self.homes = list(own.values())
        self.group = FlatGroup(comm, [(names[p], p) for p in own])
        full = self.group.full
        self.shard = self.group.shard = nn.Parameter(self.group.own(full).clone())
        self.full = full.requires_grad_()
        self.full.register_post_accumulate_grad_hook(self._reduce)
        self._arriving = self._leaving = None
        for owner, name in itertools.chain(*self.homes):
            del owner._parameters[name]
        self.free()
        module.register_forward_pre_hook(self._before_forward)
        module.register_forward_hook(self._after_forward)

    def start_gathering(self) -> None:
        """Start the all-gather (unshard), unless it has been started."""
        if self._arriving is None:
            flat = self.full.data
            flat.untyped_storage().resize_(flat.nbytes)
            self.group.own(flat).copy_(self.shard.detach())
            self._arriving = self.comm.start(self.gather, flat)

    def settle(self) -> None:
        """Wait for the mean gradient of this rank's shard, and add it to its `grad`."""
        if self._leaving is not None:
            add_to_gradient(self.shard, self._leaving.wait())
            self._leaving = None

    def free(self) -> None:
        """Free the memory of the full parameters (reshard)."""
        if self._arriving is not None:
            self._arriving.wait()
            self._arriving = None
        # A GPU may still be reading; the next user of this memory queues behind that.
        self.full.data.untyped_storage().resize_(0)

    def _gather(self):
        self.start_gathering()
        self._arriving.wait()

    def _before_forward(self, module, inputs):
        self._gather()
        following = self.before if _in_backward() else self.after
        if following:
            following.start_gathering()
        views = self.group.views(self.full)
        for homes, view in zip(self.homes, views, strict=True):
            for owner, name in homes:
                setattr(owner, name, view)

    def _after_forward(self, module, inputs, output):
        if not _in_backward():  # in which it is recomputed to be used at once
            self.free()
        for each in _with_gradient(output):
            each.register_hook(self._before_backward)

    def _before_backward(self, gradient):
        self._gather()
        if self.before:
            self.before.start_gathering()

    def _reduce(self, full):
        gradient, full.grad = full.grad, None
        self.free()
        self.settle()
        self._leaving = self.comm.start(self._mean_part, gradient)

    def _mean_part(self, comm, gradient):
        part = mean_part(comm, gradient)
        if self.replicas is not None:
            self.replicas.start(ring_all_reduce, part, op=AVERAGE).wait()
        return part


def _in_backward():
    return torch._C._current_graph_task_id() != -1  # as torch's own checkpoint checks


def _with_gradient(output):
    """Return the tensors in a module's output that require gradients."""
    tensors = filter(torch.is_tensor, tree_leaves(output))
    return [tensor for tensor in tensors if tensor.requires_grad]


def _own_parameters(module, units):
    """Return trained parameters outside of inner units -> their (module, name)s."""
    inside = {
        each
        for unit in module.modules()
        if unit is not module and unit in units
        for each in unit.modules()
    }
    own = {}
    for owner in module.modules():
        for name, parameter in owner._parameters.items():
            trained = parameter is not None and parameter.requires_grad
            if trained and owner not in inside:
                own.setdefault(parameter, []).append((owner, name))
    return own


def _refuse_shared(homes, names):
    seen = set()
    for own in homes.values():
        shared = [names[parameter] for parameter in own if parameter in seen]
        if shared:
            raise InvalidArgument(
                f"two units share {shared[0]}, and one would free it while the other "
                "is at work. Choose units of which only one has it."
            )
        seen |= own.keys()
