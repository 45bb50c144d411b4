"""State of a rank's training as plain data: copied for checkpoints, and loaded.

flat      for each group of parameters: its values, masters, moments, each a shard
single    for each group: single numbers, such as a count of steps
options   of the optimizer, such as its learning rate
rest      unsharded tensors: buffers, frozen parameters
"""

import torch

from distlab.errors import InvalidArgument
from distlab.train.optimizer_steps import MasterWeights
from distlab.train.shards import all_gather_parts
from distlab.train.zero import ZeroOptimizer

__all__ = ["Learned"]


class Learned:
    """The parameters and the optimizer's state of one rank.

    trained: a `FullySharded`, and the optimizer of its shards; or a `ZeroOptimizer`,
        which has its own.
    Raises: InvalidArgument for an optimizer with several groups of parameters.
    """

    def __init__(self, trained, optimizer=None):
        if isinstance(trained, ZeroOptimizer):
            optimizer = trained.optimizer
        self.trained, self.optimizer, self.inner = trained, optimizer, optimizer
        self.has_masters = isinstance(optimizer, MasterWeights)
        self.stepped = trained.shards
        if self.has_masters:
            self.stepped, self.inner = optimizer.masters, optimizer.optimizer
        if len(self.inner.param_groups) != 1:
            raise InvalidArgument(
                "a checkpoint takes an optimizer with one group of parameters, and "
                f"this one has {len(self.inner.param_groups)}."
            )

    @property
    def kind(self) -> str:
        """The optimizer in words, such as "Adam with master weights"."""
        name = type(self.inner).__name__
        return f"{name} with master weights" if self.has_masters else name

    def layout(self) -> list:
        """Return (name, shape, type) of the parameters of each group, as lists."""
        return [
            [
                [name, list(shape), str(group.full.dtype).removeprefix("torch.")]
                for name, shape in zip(group.names, group.shapes, strict=True)
            ]
            for group in self.trained.groups
        ]

    def shapes(self) -> dict[str, list[int]]:
        """Return the shape of each sharded parameter, by its first name."""
        return {name: shape for group in self.layout() for name, shape, _ in group}

    def rest(self) -> dict[str, torch.Tensor]:
        """Return the unsharded tensors by name: buffers and frozen parameters."""
        names, shapes = self.trained.names, self.shapes()
        state = self.trained.module.state_dict()
        return {k: v.cpu() for k, v in state.items() if names.get(k) not in shapes}

    def options(self) -> dict:
        """Return the optimizer's options, such as its learning rate."""
        (group,) = self.inner.param_groups
        return {key: value for key, value in group.items() if key != "params"}

    def taken(self) -> dict:
        """Return a copy of this rank's state, on the CPU."""
        flat, single = [], []
        for shard, stepped in zip(self.trained.shards, self.stepped, strict=True):
            state = {"values": shard.detach()}
            if self.has_masters:
                state["masters"] = stepped.detach()
            state |= self.inner.state.get(stepped, {})
            parts = {k: v for k, v in state.items() if _is_part(v, shard)}
            flat.append({key: part.cpu().clone() for key, part in parts.items()})
            single.append({k: v for k, v in state.items() if k not in parts})
        return {
            "flat": flat,
            "single": single,
            "options": self.options(),
            "rest": self.rest(),
        }

    def put_back(self, content: dict) -> None:
        """Load a state that `taken` returned; every rank calls this."""
        state = {}
        for place, flat in enumerate(content["flat"]):
            self.trained.shards[place].detach().copy_(flat.pop("values"))
            if self.has_masters:
                self.stepped[place].detach().copy_(flat.pop("masters"))
            if flat:
                state[place] = flat | content["single"][place]
        options = content["options"] | {"params": list(range(len(self.stepped)))}
        self.inner.load_state_dict({"state": state, "param_groups": [options]})
        self.trained.module.load_state_dict(content["rest"], strict=False)
        if isinstance(self.trained, ZeroOptimizer):
            for group in self.trained.groups:
                all_gather_parts(self.trained.comm, group.full)
        self.trained.watch.forget()


def _is_part(value, shard):
    return torch.is_tensor(value) and value.shape == shard.shape
