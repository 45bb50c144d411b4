"""Horovod's interface in three calls: broadcast, wrap, scale.

    broadcast_parameters(comm, model)
    optimizer = DistributedOptimizer(comm, torch.optim.SGD(model.parameters(), rate))
    rate = rate * comm.world_size

Its idea: three lines turn a training loop for one GPU into one for many. The package
itself cannot be installed with current versions of PyTorch: its last release, 0.28.1
of 2023, is compiled as C++14, and PyTorch's headers need C++17 since 2.1
(horovod/horovod, issue 3996).

Horovod starts to average a gradient as soon as backward has it, and sends several that
are ready as one message, its "tensor fusion". Here all of that waits for `step`.

Source: Sergeev and Del Balso, "Horovod: fast and easy distributed deep learning in
TensorFlow" (2018).
"""

import torch
from torch import nn

from distlab.collectives import AVERAGE, ring_all_reduce
from distlab.train.data_parallel import gradient_of
from distlab.train.replica_checks import check_same_model, copy_from_rank_0

__all__ = ["DistributedOptimizer", "broadcast_parameters"]


def broadcast_parameters(comm, module: nn.Module) -> None:
    """Broadcast rank 0's parameters and buffers.

    Raises: InvalidArgument, naming the first parameter that differs in shape or type.
    """
    check_same_model(comm, module)
    copy_from_rank_0(comm, module)


class DistributedOptimizer:
    """An optimizer that averages all gradients over the ranks before each step.

    A parameter without a gradient counts as zero; frozen ones are left alone.
    """

    def __init__(self, comm, optimizer: torch.optim.Optimizer):
        self.comm, self.optimizer = comm, optimizer

    def step(self) -> None:
        """Average the gradients, then step."""
        for group in self.optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.requires_grad:
                    ring_all_reduce(self.comm, gradient_of(parameter), op=AVERAGE)
        self.optimizer.step()

    def zero_grad(self) -> None:
        """Drop all gradients."""
        self.optimizer.zero_grad()
