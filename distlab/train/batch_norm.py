"""Batch norm over the samples of all ranks.

A rank's own share of a batch may be a handful of samples, whose mean is a poor estimate
of the batch's. So mean and variance are summed over all ranks, in forward and, since
each sample then depends on all others, in backward too.
"""

import torch
from torch import nn

from distlab.collectives import ring_all_reduce

__all__ = ["SyncBatchNorm"]


class SyncBatchNorm(nn.Module):
    """As `nn.BatchNorm1d`, over the batches of all ranks together.

    features: numbers per sample. x: [this rank's samples, features].
    Cost: two all-reduces of `features` numbers in forward, and two in backward.
    """

    def __init__(self, comm, features: int, *, eps: float = 1e-5, momentum=0.1):
        super().__init__()
        self.comm, self.eps, self.momentum = comm, eps, momentum
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_var", torch.ones(features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x less its mean, over its deviation, times weight, plus bias."""
        if not self.training:
            return self._scaled(x - self.running_mean, self.running_var)
        samples = x.new_full((1,), float(len(x)))
        count, total = _SumOverRanks.apply(
            self.comm, torch.cat([samples, x.sum(dim=0)])
        ).split([1, x.shape[1]])
        centred = x - total / count
        variance = _SumOverRanks.apply(self.comm, (centred**2).sum(dim=0)) / count
        with torch.no_grad():
            unbiased = variance * count / (count - 1)
            self.running_mean.lerp_(total / count, self.momentum)
            self.running_var.lerp_(unbiased, self.momentum)
        return self._scaled(centred, variance)

    def _scaled(self, centred, variance):
        return centred / (variance + self.eps).sqrt() * self.weight + self.bias


class _SumOverRanks(torch.autograd.Function):
    """The sum of all ranks' tensors; so each rank's tensor is part of all results."""

    @staticmethod
    def forward(ctx, comm, tensor):
        ctx.comm = comm
        total = tensor.detach().clone()
        ring_all_reduce(comm, total)
        return total

    @staticmethod
    def backward(ctx, gradient):
        total = gradient.clone()
        ring_all_reduce(ctx.comm, total)
        return None, total
