"""Sparsification: few elements are sent, each with its index.

gradient   -.02  .31  .00 -.44  .05  .01  .27 -.03        density 3/8
top-k      (1, .31) (3, -.44) (6, .27)                    indices cost bytes
random-k   (0, -.02) (4, .05) (6, .27)                    a shared seed has the
                                                          indices on every rank
"""

import torch

from distlab.collectives import AVERAGE, ring_all_reduce
from distlab.cost import ring_all_reduce as cost_of_all_reduce
from distlab.errors import InvalidArgument
from distlab.train.compression.compressor import (
    Compressor,
    elements_of,
    pack,
    packed_bytes,
    unpack,
)

__all__ = ["RandomK", "SparseTernary", "TopK"]


class Sparse(Compressor):
    """The base class of sparse compressors, with the number of elements that they send.

    density: the fraction of elements that is sent; at least one of each bucket.
    """

    def __init__(self, density: float, seed: int = 0):
        super().__init__(seed)
        self.density = checked_density(density)

    def kept(self, count: int) -> int:
        """Return k: the number of elements sent, of `count`."""
        return min(count, max(1, round(self.density * count)))


class TopK(Sparse):
    """The k elements of the largest magnitude: 4 bytes each, and 4 for the index.

    Source: Aji and Heafield, "Sparse communication for distributed gradient descent"
        (2017).
    """

    def nbytes(self, count: int) -> int:
        """Return 8 for each element kept."""
        return 8 * self.kept(count)

    def compress(self, flat: torch.Tensor) -> torch.Tensor:
        """Return the indices as int32, then the elements as float32."""
        indices = largest(flat, self.kept(len(flat)))
        elements = flat[indices].float()
        return torch.cat([indices.int().view(torch.uint8), elements.view(torch.uint8)])

    def add_to(self, total: torch.Tensor, code: torch.Tensor) -> None:
        """Add each element to `total` at its index."""
        half = len(code) // 2
        indices, elements = code[:half], code[half:]
        elements = elements.view(torch.float32).to(total.dtype)
        total.index_add_(0, indices.view(torch.int32), elements)


class SparseTernary(Sparse):
    """The k largest as their sign only, times the mean of their magnitudes.

    Indices take as many bits as the last one needs, and a sign one more.

    Source: Sattler et al., "Robust and communication-efficient federated learning from
        non-i.i.d. data" (2019), which codes the gaps between indices shorter still.
    """

    def nbytes(self, count: int) -> int:
        """Return 4 for the scale, and the packed indices and signs."""
        kept = self.kept(count)
        return (4 if kept else 0) + packed_bytes(kept, self.width(count))

    def width(self, count: int) -> int:
        """Return the bits of an index into `count` elements, with a sign."""
        return max(1, (count - 1).bit_length()) + 1

    def compress(self, flat: torch.Tensor) -> torch.Tensor:
        """Return the mean magnitude as float32, then the packed indices and signs."""
        indices = largest(flat, self.kept(len(flat)))
        elements = flat[indices].float()
        scale = elements.abs().mean().view(1)[: len(flat)]
        signed = 2 * indices + (elements >= 0)
        packed = pack(signed, self.width(len(flat)))
        return torch.cat([scale.view(torch.uint8), packed])

    def add_to(self, total: torch.Tensor, code: torch.Tensor) -> None:
        """Add the scale to `total` at each index, or subtract it."""
        count = len(total)
        if count:
            signed = unpack(code[4:], self.width(count), self.kept(count)).long()
            signs = 2 * (signed & 1) - 1
            elements = signs * code[:4].clone().view(torch.float32)
            total.index_add_(0, signed >> 1, elements.to(total.dtype))


class RandomK(Sparse):
    """k elements drawn anew at each step, the same on every rank: an all-reduce of k.

    unbiased: multiply them by d/k, so that the mean of many draws is the gradient. With
        error feedback that is wrong: elements left out are sent later anyway.
    Source: Stich, Cordonnier and Jaggi, "Sparsified SGD with memory" (2018).
    """

    def __init__(self, density: float, *, unbiased: bool = False, seed: int = 0):
        super().__init__(density, seed)
        self.unbiased, self.contracts = unbiased, not unbiased
        self._shared = torch.Generator().manual_seed(seed)

    def nbytes(self, count: int) -> int:
        """Return 4 for each element kept."""
        return 4 * self.kept(count)

    def average(self, comm, flat, parameters):
        """Return the mean over ranks, and this rank's decompressed part of it."""
        order = torch.randperm(len(flat), generator=self._shared)
        indices = order[: self.kept(len(flat))].to(flat.device)
        times = len(flat) / max(1, len(indices)) if self.unbiased else 1
        elements = flat[indices].float() * times
        sent, mean = torch.zeros_like(flat), torch.zeros_like(flat)
        sent[indices] = elements.to(flat.dtype)
        ring_all_reduce(comm, elements, op=AVERAGE)
        mean[indices] = elements.to(flat.dtype)
        return mean, sent

    def cost(self, world_size, shapes):
        """Return the cost of `average`: an all-reduce of nbytes.

        T = 2(n-1) (alpha + nbytes/n beta)
        """
        code_bytes = self.nbytes(elements_of(shapes))
        return cost_of_all_reduce(world_size, code_bytes, itemsize=4)


def largest(flat: torch.Tensor, kept: int) -> torch.Tensor:
    """Return the indices of the `kept` elements of the largest magnitude."""
    return torch.topk(flat.abs(), kept, sorted=False).indices


def checked_density(density: float) -> float:
    """Return a density, if it is above 0 and not above 1.

    Raises: InvalidArgument.
    """
    if not 0 < density <= 1:
        raise InvalidArgument(
            f"density is the share of elements that is sent, above 0 and up to 1, and "
            f"got {density!r}."
        )
    return density
