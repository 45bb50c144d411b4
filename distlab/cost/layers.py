"""What a transformer layer keeps for its backward pass, and sends, when it is split.

    bytes kept, in s b h              nothing recomputed        attention recomputed
    one rank                          34 + 5 a s / h            34
    tensor parallel, t ranks          10 + 24/t + 5 a s / (h t) 10 + 24/t
    and sequence parallel             (34 + 5 a s / h) / t      34 / t

Numbers are of 16 bits, masks of dropout one byte. 10 of the 34 are outside of what
tensor parallelism splits: inputs of the two norms (4), of attention and of the network
(4), and two masks (2). The network keeps 4 h wide values before and after GELU (16).

Source: Korthikanti et al., "Reducing activation recomputation in large transformer
models" (2022), table 2; Shoeybi et al., "Megatron-LM" (2019), section 3.
"""

from distlab.errors import InvalidArgument

__all__ = ["activation_bytes", "tensor_parallel_traffic_bytes"]

_RECOMPUTED = ("none", "selective", "full")


def activation_bytes(
    *,
    length: int,
    batch: int,
    width: int,
    heads: int,
    ranks: int = 1,
    sequence: bool = False,
    recompute: str = "none",
) -> float:
    """Return the bytes that one rank keeps of one layer's activations.

    length, batch, width, heads: s, b, h, a: tokens of a sequence, sequences of a
        microbatch, hidden size, attention heads. ranks: t, of tensor parallelism.
    sequence: whether norms, dropout and sums are cut along the sequence, too.
    recompute: "none"; "selective": softmax, its dropout and what they are made from;
        "full": all but the layer's input. Fused attention keeps what "selective" does.

    Raises: InvalidArgument for another recompute, or a size below 1.
    """
    sizes = {"length": length, "batch": batch, "width": width, "heads": heads}
    for name, size in (sizes | {"ranks": ranks}).items():
        if size < 1:
            raise InvalidArgument(f"{name} is at least 1, and got {size!r}.")
    if recompute not in _RECOMPUTED:
        raise InvalidArgument(
            f"recompute is one of {', '.join(_RECOMPUTED)}, and got {recompute!r}."
        )
    activation = length * batch * width
    if recompute == "full":
        return 2 * activation
    core = 0.0 if recompute == "selective" else 5 * heads * length / width
    outside = 10 / ranks if sequence else 10
    return activation * (outside + 24 / ranks + core / ranks)


def tensor_parallel_traffic_bytes(ranks: int, tensor_bytes: int) -> float:
    """Return what each rank sends for one layer, forward and backward.

    tensor_bytes: S, of one activation: s b h numbers. Attention and network each have
    an all-reduce in either direction, or, with sequence parallelism, an all-gather and
    a reduce-scatter, its two halves: as many bytes.
    """
    return 4 * 2 * (ranks - 1) / ranks * tensor_bytes
