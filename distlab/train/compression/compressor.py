"""The interface of compressors: a gradient as fewer bytes, and the average of such.

    rank 0   gradient ─▶ compress ─▶ code 0 ─┐              ┌─▶ Σ decompressed / n
    rank 1   gradient ─▶ compress ─▶ code 1 ─┼─ all-gather ─┤   the same on every rank
    rank 2   gradient ─▶ compress ─▶ code 2 ─┘              └─▶

Codes can't be added: the sum of two top-k gradients has up to 2k elements, and that of
two 8-bit numbers has 9 bits. So each rank needs the code of every other, and receives
(n-1) codes, where an all-reduce of the plain gradient moves less than two gradients
for any number of ranks.

Numbers of a few bits are packed into bytes without gaps:

    values of 4 bits    │ a b │ c d │ e 0 │       two a byte, the last one padded
    values of 3 bits    │ aaabbbcc │ cdddeee0 │   across the edges of bytes
"""

from collections.abc import Callable

import torch
from torch.nn import functional

from distlab.collectives import ring_all_gather
from distlab.cost import Cost
from distlab.cost import ring_all_gather as cost_of_all_gather

__all__ = [
    "Compressor",
    "elements_of",
    "pack",
    "packed_bytes",
    "quantized_gather",
    "room_for_a_sum",
    "unpack",
]


class Compressor:
    """A lossy code of a flat tensor, averaged by gathering the code of every rank.

    seed: of its random numbers; each rank draws its own.
    contracts: True if for any tensor the error's norm is below the tensor's, on
        average; if not, an error that is fed back may grow without bound.
    """

    contracts = True

    def __init__(self, seed: int = 0):
        self.seed, self.generator = seed, None

    def nbytes(self, count: int) -> int:
        """Return the bytes of the code of `count` elements."""
        raise NotImplementedError

    def compress(self, flat: torch.Tensor) -> torch.Tensor:
        """Return the code: uint8, [nbytes(len(flat))]."""
        raise NotImplementedError

    def add_to(self, total: torch.Tensor, code: torch.Tensor) -> None:
        """Decompress a code and add it to `total`, in place."""
        raise NotImplementedError

    def decompress(self, code: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        """Return the decompressed tensor, of the shape and type of `like`."""
        total = torch.zeros_like(like)
        self.add_to(total, code)
        return total

    def average(
        self, comm, flat: torch.Tensor, parameters: list
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the mean over ranks, and this rank's decompressed part of it.

        parameters: those of the gradients in `flat`, one after the other.
        Cost: `cost` of the parameters' shapes.
        """
        self.seed_for(comm, flat.device)
        codes = ring_all_gather(comm, self.compress(flat))
        total = room_for_a_sum(flat)
        for code in codes:
            self.add_to(total, code)
        mean = (total / comm.world_size).to(flat.dtype)
        return mean, self.decompress(codes[comm.rank], flat)

    def cost(self, world_size: int, shapes: list[torch.Size]) -> Cost:
        """Return the cost of `average` for gradients of these shapes.

        T = (n-1) (alpha + nbytes beta)
        """
        return cost_of_all_gather(world_size, self.nbytes(elements_of(shapes)))

    def seed_for(self, comm, device: torch.device) -> None:
        """Make the generator of this rank, if there is none yet."""
        if self.generator is None:
            self.generator = torch.Generator(device)
            self.generator.manual_seed(1000 * self.seed + comm.rank)


def room_for_a_sum(like: torch.Tensor) -> torch.Tensor:
    """Return zeros to add codes to, of a tensor's shape: float32, or more if it is so.

    A bfloat16 has 8 bits of precision: adding a term smaller than 1/256 of the sum
    changes nothing.
    """
    dtype = torch.promote_types(like.dtype, torch.float32)
    return torch.zeros_like(like, dtype=dtype)


def elements_of(shapes: list[torch.Size]) -> int:
    """Return the number of elements in tensors of these shapes together."""
    return sum(torch.Size(shape).numel() for shape in shapes)


def quantized_gather(compressor: Compressor) -> Callable:
    """Return a gather for `FullySharded` that sends parameters as codes.

    Each rank decompresses its own code, too, so that all compute with the same
    parameters; the optimizer steps the shards, which stay exact.

    compressor: such as Quantized(8), which ZeRO++ uses for float16 parameters, or
        FP8() and MX(): no element is added to another on the way.
    Cost: n-1 rounds; every rank sends (n-1) nbytes of its part.
    Source: Wang et al., "ZeRO++: extremely efficient collective communication for giant
        model training" (2023), section 3.1.
    """

    def gather(comm, flat):
        parts = flat.view(comm.world_size, -1)
        codes = ring_all_gather(comm, compressor.compress(parts[comm.rank]))
        for part, code in zip(parts, codes, strict=True):
            part.copy_(compressor.decompress(code, part))

    return gather


def packed_bytes(count: int, bits: int) -> int:
    """Return the number of bytes that `count` numbers of `bits` bits take."""
    return -(-count * bits // 8)


def pack(values: torch.Tensor, bits: int) -> torch.Tensor:
    """Return numbers from 0 to 2**bits - 1 packed into bytes: uint8, flat.

    values: flat, of an integer type or bool.
    """
    if 8 % bits:
        values, bits = _as_bits(values, bits), 1
    each = 8 // bits
    values = functional.pad(values.to(torch.uint8), (0, -len(values) % each))
    rows, packed = values.view(-1, each), values.new_zeros(len(values) // each)
    for place in range(each):
        packed |= rows[:, place] << (place * bits)
    return packed


def unpack(packed: torch.Tensor, bits: int, count: int) -> torch.Tensor:
    """Return the first `count` numbers of `bits` bits: uint8, or int64 above 8 bits.

    packed: a result of `pack`.
    """
    if 8 % bits:
        rows = unpack(packed, 1, count * bits).view(count, bits).long()
        return (rows << torch.arange(bits, device=packed.device)).sum(dim=1)
    each, mask = 8 // bits, 2**bits - 1
    columns = [(packed >> (place * bits)) & mask for place in range(each)]
    return torch.stack(columns, dim=1).view(-1)[:count]


def _as_bits(values, bits):
    """Return each number's binary digits, the lowest first, one after the other."""
    places = torch.arange(bits, device=values.device)
    return ((values.long()[:, None] >> places) & 1).view(-1)
