"""Signatures of calls: strings that are equal on two ranks iff the calls match.

So properties that may differ between ranks (the sizes of an all-to-all, the list that
only the root of a scatter has) are not in them.
"""

import math
import re

__all__ = ["signature"]

# Source: the names that ProcessGroupNCCL and ProcessGroupGloo record, PyTorch 2.13.
_PUBLIC = {
    "_all_gather_base": "all_gather_into_tensor",
    "_allgather_base": "all_gather_into_tensor",
    "_reduce_scatter_base": "reduce_scatter_tensor",
    "_broadcast_oop": "broadcast",
    "_reduce_oop": "reduce",
    "all_reduce_barrier": "barrier",
    "allreduce_coalesced": "all_reduce_coalesced",
}
_SIZES_DIFFER = re.compile("all_to_all|all_gather_v|reduce_scatter_v|barrier|coalesced")
_DTYPES = {"Float": "float32", "Double": "float64", "Half": "float16", "Byte": "uint8"}
_DTYPES |= {"Char": "int8", "Short": "int16", "Int": "int32", "Long": "int64"}
_PAIR = re.compile(r"(send|recv) (\d+)(?:->|<-)(\d+)")

_Tensors = tuple[tuple[tuple[int, ...], ...], tuple[str, ...]]


def signature(
    name: str, inputs: _Tensors, outputs: _Tensors, ranks: tuple[int, ...]
) -> tuple[str, tuple[tuple[str, int, str], ...]]:
    """Return (call as text, its peers as (way, rank, tensor) if a send or receive).

    name: as recorded, without the backend. inputs, outputs: (sizes, types).
    ranks: the members of the group, to map group ranks in `name`; () if unknown.
    """
    if pair := _PAIR.fullmatch(name):
        way, peer = pair[1], int(pair[3])
        peer = ranks[peer] if peer < len(ranks) else peer
        tensor = _tensors(*(inputs if way == "send" else outputs))
        to = "to" if way == "send" else "from"
        return f"{way}({tensor}) {to} rank {peer}", ((way, peer, tensor),)
    name = _PUBLIC.get(name, name)
    if _SIZES_DIFFER.search(name):
        return f"{name}()", ()
    given, made = _tensors(*inputs), _tensors(*outputs)
    if name in ("gather", "scatter"):
        return f"{name}({given if name == 'gather' else made})", ()
    return f"{name}({given if given == made else f'{given} → {made}'})", ()


def _tensors(sizes, dtypes):
    """Return "float32[2, 4]"; for several tensors their number, type and size."""
    kinds = {_DTYPES.get(dtype, dtype.lower()) for dtype in dtypes}
    if len(sizes) == 1:
        return f"{'/'.join(kinds)}{list(sizes[0])}"
    if len(set(sizes)) == 1:
        return f"{len(sizes)} × {'/'.join(sorted(kinds))}{list(sizes[0])}"
    elements = sum(map(math.prod, sizes))
    return f"{len(sizes)} × {'/'.join(sorted(kinds))}, {elements:,} elements"
