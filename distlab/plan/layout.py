"""Layouts: how a model and its batch are cut over GPUs; and the run to plan."""

from dataclasses import KW_ONLY, dataclass, field

from distlab.cost import SCHEDULES
from distlab.errors import InvalidArgument

__all__ = ["DIMENSIONS", "PRECISIONS", "Layout", "Precision", "TrainingRun"]


@dataclass(frozen=True)
class Precision:
    """Bytes of each parameter: itself, its gradient, and the optimizer's state."""

    parameter_bytes: float = 2
    gradient_bytes: float = 2
    state_bytes: float = 12
    activation_bytes: float = 2


DIMENSIONS = ("tp", "cp", "ep", "pp", "dp")

PRECISIONS = {
    # ZeRO's 16 bytes: 16-bit parameters and gradients; float32 copy and two moments
    "16 bytes": Precision(),
    # Megatron's 18: gradients are accumulated in float32
    "18 bytes": Precision(gradient_bytes=4),
    "float32": Precision(4, 4, 8, 4),
    # DeepSeek-V3: bfloat16 parameters and moments, float32 gradients and copy
    "DeepSeek-V3": Precision(2, 4, 8),
}


_KNOWN = {
    "zero": (0, 1, 2, 3),
    "schedule": SCHEDULES,
    "recompute": ("none", "selective", "full"),
    "sequence": (True, False),
}


@dataclass(frozen=True)
class Layout:
    """Sizes of the mesh dimensions, and what each does.

    tp: tensor parallel ranks; with sequence parallelism, if `sequence`.
    pp: pipeline stages. schedule: "GPipe", "1F1B", "interleaved" with `chunks` chunks
        of the model in a stage, "ZB-H1", "ZB-H2", "ZB-V" or "DualPipe".
    cp: context parallel ranks. ep: expert parallel ranks, which divide dp * cp.
    dp: data parallel ranks. zero: ZeRO's stage over dp * cp ranks, 3 for FSDP.
    microbatch: sequences of a microbatch.
    recompute: "none", "selective" (attention's scores) or "full" (each layer).
    overlap: dimensions whose communication runs beside compute, as far as it goes.

    Raises: InvalidArgument.
    """

    _: KW_ONLY
    tp: int = 1
    pp: int = 1
    cp: int = 1
    ep: int = 1
    dp: int = 1
    zero: int = 1
    microbatch: int = 1
    schedule: str = "1F1B"
    chunks: int = 1
    recompute: str = "selective"
    sequence: bool = True
    overlap: tuple[str, ...] = ("dp",)

    def __post_init__(self):
        for name in ("tp", "pp", "cp", "ep", "dp", "microbatch", "chunks"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise InvalidArgument(
                    f"{name} is a whole number from 1 up, and got {value!r}."
                )

        for name, known in _KNOWN.items():
            if (value := getattr(self, name)) not in known:
                shown = ", ".join(map(repr, known))
                raise InvalidArgument(f"{name} is one of {shown}, and got {value!r}.")
        if isinstance(self.overlap, str) or set(self.overlap) - {*DIMENSIONS}:
            raise InvalidArgument(
                f"overlap is a tuple of some of {DIMENSIONS}, and got {self.overlap!r}."
            )

    @property
    def gpus(self) -> int:
        """The number of GPUs: tp * pp * cp * dp; experts are on those of dp and cp."""
        return self.tp * self.pp * self.cp * self.dp

    def __str__(self):
        sizes = [f"{n}={getattr(self, n)}" for n in ("tp", "pp", "cp", "ep", "dp")]
        shown = [s for s in sizes if not s.endswith("=1")] or ["dp=1"]
        shown += [f"ZeRO-{self.zero}"] * (self.zero > 0)
        schedule = self.schedule + f" v={self.chunks}" * (self.chunks > 1)
        shown += [schedule] * (self.pp > 1)
        return " ".join([*shown, f"b={self.microbatch}", f"recompute={self.recompute}"])


@dataclass(frozen=True)
class TrainingRun:
    """A run: sequences in a batch, their length, and tokens to train on in all.

    A larger batch is faster here; that its tokens teach less, no number says.
    precision: bytes of each state. fused: attention keeps no scores (FlashAttention).
    """

    batch: int
    length: int
    tokens: float
    precision: Precision = field(default_factory=Precision)
    fused: bool = True
