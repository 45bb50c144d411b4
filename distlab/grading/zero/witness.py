"""`Witness`: what the checks of exercise 12 hear from each rank, and what they answer.

    rank                                  witness
    make_optimizer(tensors)      ──▶      notes how many numbers
    optimizer.step(): values     ──▶      the new values; the state stays here
    what a test of ZeRO 1 or 3 has besides: see `FlatWitness` and `StackWitness`

A rank does not know how an optimizer changes numbers, so it cannot do so by itself.
"""

from typing import ClassVar

import torch

from distlab.grading.zero.tasks import Maker
from distlab.train.memory import storage_bytes

__all__ = ["RankWitness", "Witness", "demand", "numbers_of", "tensor_of"]


class RankWitness:
    """What is known of one rank.

    began: how many calls of Comm came before each thing that the probe had it do.
    stepped: the same for each optimizer step that changed something.
    """

    def __init__(self, name: str):
        self.maker = Maker(name)
        self.began, self.stepped = [], []
        self.ended = False

    def result(self) -> dict:
        """Return what the check compares."""
        return {
            "begins": self.began,
            "stepped": self.stepped,
            "handed": [tensor.numel() for tensor in self.maker.handed],
            "made": len(self.maker.made),
            "state": storage_bytes(self.maker.state),
            "ended": self.ended,
        }


class Witness:
    """Hears what ranks say; `ranks` has for each rank what is known of it."""

    def __init__(self, ranks: list[RankWitness]):
        self.ranks = ranks

    def hear(self, rank: int, step: int, kind: str, *more: object) -> object:
        """Take in what a rank says, and return what it is to know then.

        step: how many calls of its Comm it had made.
        """
        return self._KINDS[kind](self, rank, step, *more)

    def results(self) -> list[dict]:
        """Return for each rank what the check compares."""
        return [own.result() for own in self.ranks]

    def _made(self, rank, step, tensors):
        """A rank makes an optimizer of tensors of these types and sizes."""
        maker = self.ranks[rank].maker
        sizes = [(_DTYPES[dtype], int(size)) for dtype, size in tensors]
        demand(len(maker.made) < _MOST and len(sizes) < _MOST, "too many tensors")
        demand(all(size >= 0 for _, size in sizes), "a tensor has no such size")
        held = sum(tensor.numel() for tensor in maker.handed)
        more = sum(size for _, size in sizes)
        demand(held + more < _MOST_NUMBERS, "too large an optimizer")
        maker([torch.zeros(size, dtype=dtype) for dtype, size in sizes])
        return len(maker.made) - 1

    def _stepped(self, rank, step, number, values, gradients):
        """Return the values after a step, each None if its tensor has no gradient."""
        own = self.ranks[rank]
        optimizer = own.maker.made[number]
        before = [
            tensor_of(each, tensor)
            for each, tensor in zip(values, optimizer.tensors, strict=True)
        ]
        for tensor, old, gradient in zip(
            optimizer.tensors, before, gradients, strict=True
        ):
            tensor.copy_(old)
            tensor.grad = None if gradient is None else tensor_of(gradient, tensor)
        optimizer.step()
        pairs = list(zip(before, optimizer.tensors, strict=True))
        if not all(torch.equal(*pair) for pair in pairs):
            own.stepped.append(step)
        return [None if t.grad is None else t.tolist() for t in optimizer.tensors]

    _KINDS: ClassVar[dict] = {"made": _made, "stepped": _stepped}


_MOST, _MOST_NUMBERS = 100, 10**6
_DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16)
}


def numbers_of(numbers: list, shape: list[int]) -> torch.Tensor:
    """Return told numbers as a tensor of float64."""
    return torch.tensor(numbers, dtype=torch.float64).view(shape)


def tensor_of(numbers: list, like: torch.Tensor) -> torch.Tensor:
    """Return told numbers as a tensor of that type and size."""
    return torch.tensor(numbers, dtype=torch.float64).to(like.dtype).view_as(like)


def demand(right: bool, why: str) -> None:
    """Refuse what no probe says.

    Raises: ValueError.
    """
    if not right:
        raise ValueError(why)
