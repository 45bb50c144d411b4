"""Horovod's idea in three calls: broadcast, wrap, scale.

    broadcast_parameters(comm, model)
    optimizer = DistributedOptimizer(comm, torch.optim.SGD(model.parameters(), rate))
    rate = rate * comm.world_size

The package itself can't be installed any more with current versions of PyTorch; what it
brought was this: a training loop for one GPU becomes one for many by three lines.

Source: Sergeev and Del Balso, "Horovod: fast and easy distributed deep learning in
TensorFlow" (2018).
"""

import torch
from torch import nn

from distlab.collectives import AVERAGE, ring_all_reduce
from distlab.train.data_parallel import gradient_of
from distlab.train.sameness import check_same_model, copy_from_rank_0

__all__ = ["DistributedOptimizer", "broadcast_parameters"]


def broadcast_parameters(comm, module: nn.Module) -> None:
    """Give every rank rank 0's parameters and buffers.

    Raises: InvalidArgument, naming the first parameter that differs in shape or type.
    """
    check_same_model(comm, module)
    copy_from_rank_0(comm, module)


class DistributedOptimizer:
    """An optimizer that averages all gradients over the ranks before each step."""

    def __init__(self, comm, optimizer: torch.optim.Optimizer):
        self.comm, self.optimizer = comm, optimizer

    def step(self) -> None:
        """Average the gradients, then step."""
        for group in self.optimizer.param_groups:
            for parameter in group["params"]:
                ring_all_reduce(self.comm, gradient_of(parameter), op=AVERAGE)
        self.optimizer.step()

    def zero_grad(self) -> None:
        """Drop all gradients."""
        self.optimizer.zero_grad()
