"""`WeightsLater`: linear layers whose weight gradients are computed later.

    backward:  gradient of the output ──▶ gradient of the input, at once
                  └── stored with the layer's input ──▶ `add_up`: of the weight

Both are products of the same size, so backward is cut in half. Other parameters than a
linear layer's weight, such as a bias or a norm, get their gradients in backward.

Source: Qi et al., Zero Bubble Pipeline Parallelism (2024), section 2.
"""

import torch
from torch import nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

__all__ = ["WeightsLater"]


class WeightsLater(TorchFunctionMode):
    """A mode in which `functional.linear` delays the gradients of weights.

    Code compiled by `torch.compile`, and the attention of `nn.MultiheadAttention`, are
    not changed: all their gradients are computed in backward.
    """

    def __init__(self):
        super().__init__()
        self._aside = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        """Call a function of torch, or `_Linear` for a layer with a weight to train."""
        kwargs = kwargs or {}
        if function is functional.linear and not torch.compiler.is_compiling():
            x, weight, bias = _named(*args, **kwargs)
            if isinstance(weight, nn.Parameter) and weight.requires_grad:
                return _Linear.apply(x, weight, bias, self._aside)
        return function(*args, **kwargs)

    @property
    def nbytes(self) -> int:
        """The bytes of the stored inputs and gradients."""
        return sum(x.nbytes + gradient.nbytes for _, x, gradient in self._aside)

    def add_up(self) -> None:
        """Compute the delayed weight gradients, and add them to the weights' `grad`."""
        for weight, x, gradient in self._aside:
            rows = _rows(gradient)
            found = (rows.T @ _rows(x).to(rows.dtype)).to(weight.dtype)
            weight.grad = found if weight.grad is None else weight.grad + found
        self._aside.clear()


def _named(input, weight, bias=None):  # as functional.linear names them
    return input, weight, bias


def _rows(tensor):
    return tensor.reshape(-1, tensor.shape[-1])


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, aside):
        ctx.save_for_backward(x)  # the weight itself: a recomputed one has no `grad`
        ctx.weight, ctx.aside = weight, aside
        return functional.linear(x, weight, bias)

    @staticmethod
    def backward(ctx, gradient):
        (x,), weight = ctx.saved_tensors, ctx.weight
        ctx.aside.append((weight, x.detach(), gradient))
        needs_x, _, needs_bias, _ = ctx.needs_input_grad
        of_x = gradient @ weight.to(gradient.dtype) if needs_x else None
        of_bias = _rows(gradient).sum(0) if needs_bias else None
        return of_x, None, of_bias, None
