"""Two-way compression: each rank averages one chunk, and codes are sent twice.

    rank r    code of chunk 0 ──▶ rank 0    all-to-all: each rank has n codes of a chunk
              code of chunk 1 ──▶ rank 1
    rank r    mean of chunk r ─▶ compress ─▶ all-gather: each rank has n means

A rank sends 2(n-1)/n codes for any number of ranks: an all-reduce in two phases, with a
code in place of the elements in both. The mean is compressed once more, so that its
error needs error feedback too.

Source: Tang et al., "1-bit Adam: communication efficient large-scale training with
Adam's convergence speed" (2021), section 4.
"""

import torch
from torch.nn import functional

from distlab.collectives import pairwise_all_to_all, ring_all_gather
from distlab.cost import pairwise_all_to_all as pairwise_all_to_all_cost
from distlab.cost import ring_all_gather as ring_all_gather_cost
from distlab.train.compression.compressor import (
    Compressor,
    elements_of,
    room_for_a_sum,
)

__all__ = ["TwoWay"]


class TwoWay(Compressor):
    """Another compressor's codes, of chunks, in an all-to-all and an all-gather.

    compressor: such as Sign(), which makes it the all-reduce of 1-bit Adam.

    The error of a mean is reset when DDP rebuilds its buckets, since a rank has another
    chunk then: part of the first step's unsent rest is lost.
    """

    def __init__(self, compressor: Compressor):
        super().__init__(compressor.seed)
        self.compressor, self.contracts = compressor, compressor.contracts
        self._errors = {}  # parameters of a bucket -> of the mean of this rank's chunk

    def average(self, comm, flat, parameters):
        """Return the mean over ranks, and this rank's decompressed part of it."""
        one, n = self.compressor, comm.world_size
        one.seed_for(comm, flat.device)
        chunks = functional.pad(flat, (0, -len(flat) % n)).view(n, -1)
        codes = [one.compress(chunk) for chunk in chunks]
        total = room_for_a_sum(chunks[0])
        for code in pairwise_all_to_all(comm, codes):
            one.add_to(total, code)
        key = frozenset(parameters)
        mean = total / n + self._errors.get(key, 0)
        code = one.compress(mean)
        others = self._errors.items()
        self._errors = {k: error for k, error in others if not k & key}
        self._errors[key] = mean - one.decompress(code, mean)
        means = [one.decompress(each, mean) for each in ring_all_gather(comm, code)]
        sent = [one.decompress(code, mean) for code in codes]
        mean = torch.cat(means)[: len(flat)].to(flat.dtype)
        return mean, torch.cat(sent)[: len(flat)]

    def nbytes(self, count: int) -> int:
        """Return the bytes of the code of one chunk of `count` elements."""
        return self.compressor.nbytes(count)

    def cost(self, world_size, shapes):
        """Return the cost of `average`, with chunks of 1/n of the elements.

        T = 2(n-1) (alpha + nbytes(elements / n) beta)
        """
        chunk_bytes = self.nbytes(-(-elements_of(shapes) // world_size))
        phases = pairwise_all_to_all_cost, ring_all_gather_cost
        one, other = (phase(world_size, chunk_bytes) for phase in phases)
        return one + other
