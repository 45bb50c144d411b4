"""Packing of numbers of a few bits into bytes, without gaps.

values of 4 bits    │ a b │ c d │ e 0 │         two a byte, the last one padded
values of 3 bits    │ aaabbbcc │ cdddeee0 │     across the edges of bytes
"""

import torch
from torch.nn import functional

__all__ = ["pack", "packed_bytes", "unpack"]


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
