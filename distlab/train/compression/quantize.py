"""Quantization: every element is sent, each in fewer bits.

float32  ▕ 1 │ 8 exponent │ 23 fraction ▏      -0.0371, 0.0009, 0.0154, ...
int4     ▕ 4 ▏                                 -7, 0, 3, ...  and one scale a block
sign     ▕ 1 ▏                                 -, +, +, ...   and one scale
"""

import torch
from torch.nn import functional

from distlab.collectives import ring_all_reduce
from distlab.cost import ring_all_reduce as cost_of_all_reduce
from distlab.errors import InvalidArgument
from distlab.train.compression.compressor import (
    Compressor,
    elements_of,
    pack,
    packed_bytes,
    unpack,
)

__all__ = ["QSGD", "Cast", "Quantized", "Sign"]


class Cast(Compressor):
    """Half precision, which a ring can sum: an all-reduce of half the bytes.

    dtype: torch.float16 (10 bits of fraction, up to 65504) or torch.bfloat16 (7 bits,
        and the range of float32).
    Source: PyTorch's fp16_compress_hook and bf16_compress_hook, which divide first too.
    """

    def __init__(self, dtype: torch.dtype = torch.float16):
        super().__init__()
        if dtype not in (torch.float16, torch.bfloat16):
            raise InvalidArgument(f"a cast is to float16 or bfloat16, not {dtype}.")
        self.dtype = dtype

    def nbytes(self, count: int) -> int:
        """Return 2 for each element."""
        return 2 * count

    def compress(self, flat: torch.Tensor) -> torch.Tensor:
        """Return the rounded elements, as bytes."""
        return flat.to(self.dtype).view(torch.uint8)

    def add_to(self, total: torch.Tensor, code: torch.Tensor) -> None:
        """Add rounded elements to `total`."""
        total += code.view(self.dtype)

    def average(self, comm, flat, parameters):
        """Return the mean over ranks, and this rank's decompressed part of it.

        Raises: InvalidArgument, on every rank, if an element or a sum overflows.
        """
        rounded = (flat / comm.world_size).to(self.dtype)
        sent = rounded.to(flat.dtype) * comm.world_size
        ring_all_reduce(comm, rounded)
        mean = rounded.to(flat.dtype)
        if not bool(mean.isfinite().all()):
            raise InvalidArgument(
                f"a mean gradient is too large for {self.dtype}, whose largest number "
                f"is {torch.finfo(self.dtype).max:g}: scale the loss down, or use "
                "bfloat16."
            )
        return mean, sent

    def cost(self, world_size, shapes):
        """Return the cost of `average`: an all-reduce of nbytes.

        T = 2(n-1) (alpha + nbytes/n beta)
        """
        code_bytes = self.nbytes(elements_of(shapes))
        return cost_of_all_reduce(world_size, code_bytes, itemsize=2)


class Quantized(Compressor):
    """Whole numbers of `bits` bits, times a scale for each block of elements.

    With L = 2**(bits-1) - 1 an element x of a block with scale s is sent as the whole
    number nearest to L x / s, from -L to L. s is the largest magnitude in the block.

    block: elements that share a scale; a large one costs precision, a small one bytes.
    stochastic: round up or down at random, so that the mean of many codes is x.
    """

    def __init__(
        self, bits: int = 8, *, block: int = 2048, stochastic: bool = False, seed=0
    ):
        super().__init__(seed)
        if bits not in range(2, 9) or block < 1:
            raise InvalidArgument(
                f"quantization takes 2 to 8 bits and a block of 1 element or more, and "
                f"got {bits!r} bits and a block of {block!r}."
            )
        self.bits, self.block, self.stochastic = bits, block, stochastic
        self.most = 2 ** (bits - 1) - 1  # L

    def nbytes(self, count: int) -> int:
        """Return `bits` for each element, and 4 bytes for each block."""
        return 4 * -(-count // self.block) + packed_bytes(count, self.bits)

    def compress(self, flat: torch.Tensor) -> torch.Tensor:
        """Return the scales as float32, then the packed numbers."""
        count = len(flat)
        blocks = functional.pad(flat.float(), (0, -count % self.block))
        blocks = blocks.view(-1, self.block)
        scales = self.scales(blocks)
        numbers = blocks / scales.clamp(min=1e-38)[:, None] * self.most
        if self.stochastic:
            numbers += torch.rand(
                numbers.shape, generator=self.generator, device=flat.device
            )
            numbers.floor_()
        else:
            numbers.round_()
        numbers.clamp_(-self.most, self.most).add_(self.most)
        packed = pack(numbers.view(-1)[:count].to(torch.uint8), self.bits)
        return torch.cat([scales.view(torch.uint8), packed])

    def scales(self, blocks: torch.Tensor) -> torch.Tensor:
        """Return the scale of each block: [blocks, block] to [blocks]."""
        return blocks.abs().amax(dim=1)

    def add_to(self, total: torch.Tensor, code: torch.Tensor) -> None:
        """Add numbers times scales to `total`."""
        end = 4 * -(-len(total) // self.block)
        scales = code[:end].clone().view(torch.float32) / self.most
        numbers = unpack(code[end:], self.bits, len(total)).float() - self.most
        numbers = functional.pad(numbers, (0, -len(total) % self.block))
        numbers = numbers.view(-1, self.block) * scales[:, None]
        total += numbers.view(-1)[: len(total)]


class QSGD(Quantized):
    """Stochastic quantization by a block's Euclidean norm: unbiased, of bounded noise.

    For a block of d elements the squared error is at most min(d / L**2, sqrt(d) / L)
    times the block's squared norm, on average.

    Where that bound is 1 or more it does not contract: 4 bits need blocks below 49.

    Numbers have a fixed width here; the paper's Elias code is shorter for few levels.
    Source: Alistarh et al., "QSGD: communication-efficient SGD via gradient
        quantization and encoding" (2017), lemma 3.1.
    """

    def __init__(self, bits: int = 4, *, block: int = 512, seed: int = 0):
        super().__init__(bits, block=block, stochastic=True, seed=seed)
        self.contracts = min(block / self.most**2, block**0.5 / self.most) < 1

    def scales(self, blocks: torch.Tensor) -> torch.Tensor:
        """Return the Euclidean norm of each block."""
        most = super().scales(blocks).clamp(min=1e-38)  # squares of large ones overflow
        return most * torch.linalg.vector_norm(blocks / most[:, None], dim=1)


class Sign(Compressor):
    """One bit an element, and the mean magnitude of all of them.

    Source: Karimireddy et al., "Error feedback fixes SignSGD and other gradient
        compression schemes" (2019); zero counts as positive.
    """

    def nbytes(self, count: int) -> int:
        """Return a bit for each element, and 4 bytes for the scale."""
        return (4 if count else 0) + packed_bytes(count, 1)

    def compress(self, flat: torch.Tensor) -> torch.Tensor:
        """Return the mean magnitude as float32, then the packed signs."""
        scale = flat.abs().float().mean().view(1)[: len(flat)]
        return torch.cat([scale.view(torch.uint8), pack(flat >= 0, 1)])

    def add_to(self, total: torch.Tensor, code: torch.Tensor) -> None:
        """Add the scale to `total`, or subtract it."""
        if len(total):
            signs = unpack(code[4:], 1, len(total)).to(total.dtype)
            total += (2 * signs - 1) * code[:4].clone().view(torch.float32)
