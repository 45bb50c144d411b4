"""8-bit floating-point numbers on the wire, with a scale a tensor or a block.

float32  ▕ 1 │ 8 exponent │ 23 fraction ▏
bfloat16 ▕ 1 │ 8 exponent │ 7 ▏
e5m2     ▕ 1 │ 5 exponent │ 2 ▏           up to 57,344
e4m3     ▕ 1 │ 4 │ 3 ▏                    up to 448, and times 2**e of its block:

MX       ▕ e ▏▕ x ▏▕ x ▏ ... ▕ x ▏        33 bytes for 32 elements

A sum of such numbers needs more bits than they have: in e4m3, 16 + 1 is 16. So codes
travel as bytes, which every backend sends, and are added in float32.
"""

import math

import torch
from torch.nn import functional

from distlab.errors import InvalidArgument
from distlab.train.compression.compressor import Compressor

__all__ = ["FP8", "MX"]

SMALLEST = torch.finfo(torch.float32).tiny


class FP8(Compressor):
    """Elements as 8-bit floats, times a float32 scale that makes the largest one fit.

    The scale of a block is its largest magnitude over the largest number of the type,
    so that no element overflows. What is much smaller than its block's largest element
    has fewer bits left, and below 1/458,752 of it (e4m3) none: it becomes 0.

    dtype: torch.float8_e4m3fn, or torch.float8_e5m2 for more range and one bit less.
    block: elements that share a scale; None for one scale of the whole tensor.

    Raises: InvalidArgument for another type, and for a block of no elements.
    Source: Micikevicius et al., "FP8 formats for deep learning" (2022), table 1.
    """

    scale_bytes = 4  # of a block

    def __init__(
        self, dtype: torch.dtype = torch.float8_e4m3fn, *, block: int | None = None
    ):
        super().__init__()
        if dtype not in (torch.float8_e4m3fn, torch.float8_e5m2):
            raise InvalidArgument(
                f"8-bit floats are torch.float8_e4m3fn or torch.float8_e5m2, "
                f"not {dtype}."
            )
        if block is not None and block < 1:
            raise InvalidArgument(
                f"a block has 1 element or more, and got {block!r}; None is one scale "
                "for the whole tensor."
            )
        self.dtype, self.block = dtype, block
        self.most = torch.finfo(dtype).max

    def nbytes(self, count: int) -> int:
        """Return 1 for each element, and `scale_bytes` for each block."""
        return count + self.scale_bytes * self.blocks_of(count)

    def blocks_of(self, count: int) -> int:
        """Return the number of blocks of `count` elements, the last one padded."""
        return -(-count // (self.block or max(1, count)))

    def compress(self, flat: torch.Tensor) -> torch.Tensor:
        """Return the scales, then the elements, as bytes."""
        blocks = self._in_blocks(flat.float())
        code = self.code_scales(blocks.abs().amax(dim=1))
        elements = blocks / self.scales(code)[:, None]
        elements = elements.clamp_(-self.most, self.most).to(self.dtype)
        return torch.cat([code, elements.view(torch.uint8).view(-1)[: len(flat)]])

    def add_to(self, total: torch.Tensor, code: torch.Tensor) -> None:
        """Add elements times scales to `total`."""
        end = self.scale_bytes * self.blocks_of(len(total))
        elements = self._in_blocks(code[end:].view(self.dtype).float())
        elements *= self.scales(code[:end])[:, None]
        total += elements.view(-1)[: len(total)]

    def code_scales(self, largest: torch.Tensor) -> torch.Tensor:
        """Return the scales of blocks as bytes: float32, [blocks], to uint8, flat."""
        return (largest / self.most).clamp(min=SMALLEST).view(torch.uint8)

    def scales(self, code: torch.Tensor) -> torch.Tensor:
        """Return the scales in bytes that `code_scales` returned: float32, [blocks]."""
        return code.clone().view(torch.float32)

    def _in_blocks(self, flat):
        count = self.blocks_of(len(flat))
        size = self.block or max(1, len(flat))
        return functional.pad(flat, (0, count * size - len(flat))).view(count, size)


class MX(FP8):
    """MXFP8: 8-bit floats in blocks of 32, which share a power of two of one byte.

    With the largest magnitude of a block in [2**k, 2**(k+1)) its scale is 2**(k - 8),
    for e5m2 2**(k - 15): elements then begin in the type's highest binade. Those above
    1.75 of it are clamped to the largest number, an error of an eighth at most.

    Dividing by a power of two is exact, so only rounding loses bits; a byte a block
    costs 3 % where a float32 would cost 12.

    Source: Open Compute Project, "OCP microscaling formats (MX) specification", version
        1.0 (2023), sections 5.2 (MXFP8), 5.4.1 (E8M0) and 6.3 (conversion).
    """

    scale_bytes = 1

    def __init__(self, dtype: torch.dtype = torch.float8_e4m3fn):
        super().__init__(dtype, block=32)

    def code_scales(self, largest: torch.Tensor) -> torch.Tensor:
        """Return the exponents of blocks as bytes, 127 for 2**0."""
        highest = math.frexp(self.most)[1]  # frexp's exponents are one more than log2
        exponents = torch.frexp(largest.clamp(min=SMALLEST)).exponent - highest
        return (exponents.clamp(-127, 127) + 127).to(torch.uint8)

    def scales(self, code: torch.Tensor) -> torch.Tensor:
        """Return the powers of two of bytes that `code_scales` returned: [blocks]."""
        return torch.ldexp(torch.ones(len(code), device=code.device), code.int() - 127)
