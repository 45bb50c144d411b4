"""Activation memory of a transformer layer, and traffic of tensor parallelism.

    activations of a layer, 16 bit      no recompute              selective    full
    one rank                            sbh (34 + 5as/h)          34 sbh       2 sbh
    tensor parallel                     sbh (10 + 24/t + 5as/ht)  sbh (10 + 24/t)
    tensor and sequence parallel        sbh/t (34 + 5as/h)        34 sbh/t

s: sequence length, b: batch, h: width, a: heads, t: ranks of tensor parallelism.

Source: Korthikanti et al., "Reducing activation recomputation in large transformer
models" (2022), equations 1 to 4 and table 2.
"""

from distlab.errors import InvalidArgument

__all__ = [
    "activation_bytes",
    "block_activation_bytes",
    "kept_for_weights",
    "tensor_parallel_bytes",
]

_RECOMPUTE = ("none", "selective", "full")


def activation_bytes(
    length: int,
    batch: int,
    width: int,
    heads: int,
    *,
    tp: int = 1,
    sequence: bool = False,
    recompute: str = "none",
) -> float:
    """Return the bytes that a rank keeps of one layer, in 16 bit and with dropout.

    The 34 are 11 of attention, 19 of the MLP and 4 of two norms; the attention scores
    and their dropout are the 5as/h. With sequence parallelism the ranks keep their
    shards of the norms' outputs, too, and gather them once more in backward.

    recompute: "selective", of attention scores; "full", of all but the layer's input.

    Raises: InvalidArgument.
    """
    _check(length=length, batch=batch, width=width, heads=heads, tp=tp)
    check_recompute(recompute)
    sbh = length * batch * width
    whole = tp if sequence else 1  # by how much norms, residuals and inputs are cut
    if recompute == "full":
        return 2 * sbh / whole
    scores = 0 if recompute == "selective" else 5 * heads * length / width
    return sbh * (10 / whole + 24 / tp + scores / tp)


def block_activation_bytes(
    length: int,
    batch: int,
    width: int,
    heads: int,
    *,
    tp: int = 1,
    sequence: bool = False,
    itemsize: int = 4,
) -> float:
    """Return the bytes that `train.tensor_parallel.ParallelBlock` keeps on a CPU.

    There is no dropout, and fused attention keeps a number for each query in place of
    its scores. In elements: two inputs of norms, two of column-parallel layers, whole
    with sequence parallelism, too, since they are not gathered again; q, k, v and the
    output of attention; the hidden columns before and after GELU; two numbers for each
    norm of a token. Where heads, columns or tokens don't divide by tp it is a mean.

    Raises: InvalidArgument.
    """
    _check(length=length, batch=batch, width=width, heads=heads, tp=tp)
    places = length * batch
    norms = places * (2 * width + 4) / (tp if sequence else 1)
    inside = places * (4 * width + 8 * width + heads) / tp
    return itemsize * (norms + 2 * places * width + inside)


def kept_for_weights(length: int, width: int, heads: int) -> float:
    """Return 32h / (34h + 5as), the fraction of a layer's activations that W needs.

    W, the backward of the weights alone, needs the inputs of the linear layers and the
    gradients of their outputs; all else is freed after B, the backward of the inputs.

    Raises: InvalidArgument.
    Source: Qi et al., "Zero bubble pipeline parallelism" (2024), table 1.
    """
    _check(length=length, width=width, heads=heads)
    return 32 * width / (34 * width + 5 * heads * length)


def tensor_parallel_bytes(
    length: int, batch: int, width: int, *, tp: int, itemsize: int = 2
) -> float:
    """Return the bytes that a rank sends for one layer, forward and backward.

    Four ring all-reduces of the layer's input, 8 (t-1)/t sbh in elements. Sequence
    parallelism sends as much; one that gathers inputs again, as Megatron's, 1.25 times.

    Raises: InvalidArgument.
    """
    _check(length=length, batch=batch, width=width, tp=tp, itemsize=itemsize)
    return 8 * (tp - 1) / tp * length * batch * width * itemsize


def check_recompute(recompute: str) -> None:
    """Refuse another word than none, selective or full.

    Raises: InvalidArgument.
    """
    if recompute not in _RECOMPUTE:
        raise InvalidArgument(
            f"recompute is one of {', '.join(_RECOMPUTE)}, and got {recompute!r}."
        )


def _check(**sizes):
    for name, size in sizes.items():
        if not size >= 1:
            raise InvalidArgument(f"{name} is a number from 1 on, and got {size!r}.")
