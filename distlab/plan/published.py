"""Published models and runs, and what the closed forms and the planner make of them.

    MODELS["DeepSeek-V3"].shape.parameters
    for row in published_rows():
        print(row.name, row.quantity, row.published, row.computed, row.error)

Three kinds of row. "count" and "from time" are arithmetic on what the source gives;
"predicted" is the planner's own, with one efficiency for all rows of a GPU.
"""

import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from distlab import cost
from distlab.cost import LatentAttention, TransformerShape
from distlab.links import LINKS
from distlab.plan.cluster import GpuCluster
from distlab.plan.layout import PRECISIONS, Layout, TrainingRun
from distlab.plan.plan import plan
from distlab.units import GB

__all__ = ["PublishedModel", "PublishedRow", "published_models", "published_rows"]


class PublishedModel(NamedTuple):
    """A model's shape, its published parameters, and their source."""

    shape: TransformerShape
    parameters: int
    active: int | None
    source: str


class PublishedRow(NamedTuple):
    """A published number beside the computed one.

    kind: "count", "from time" or "predicted". leaves_out: what the computed one does.
    """

    kind: str
    name: str
    quantity: str
    published: float
    computed: float
    source: str
    leaves_out: str = ""

    @property
    def error(self) -> float:
        """The difference: of shares in points, else relative to the published."""
        difference = self.computed - self.published
        return difference if self.quantity in _SHARES else difference / self.published


_SHARES = ("MFU", "HFU", "bubble")


@cache
def published_models() -> dict[str, PublishedModel]:
    """Return the models of `models.toml` by name."""
    text = files(__package__).joinpath("models.toml").read_text()
    found = {}
    for name, row in tomllib.loads(text).items():
        shape = row["shape"]
        if "latent" in shape:
            shape["latent"] = LatentAttention(*shape["latent"])
        if isinstance(shape.get("biases"), list):
            shape["biases"] = tuple(shape["biases"])
        sizes = [shape.pop(each) for each in ("layers", "width", "heads", "vocabulary")]
        model = TransformerShape(*sizes, **shape)
        found[name] = PublishedModel(
            model, row["parameters"], row.get("active"), row["source"]
        )
    return found


def published_rows() -> Iterator[PublishedRow]:
    """Yield every published number with the computed one."""
    for rows in (_parameters, _total_flops, _zero, _from_time, _days, _predicted):
        yield from rows()


def _parameters():
    ends = "an expert's paper may count neither embedding nor output as active"
    for name, (shape, parameters, active, source) in published_models().items():
        computed = shape.parameters
        yield PublishedRow("count", name, "parameters", parameters, computed, source)
        if active:
            counted = [shape.active_parameters, shape.multiplied_parameters]
            nearest = min(counted, key=lambda n: abs(n - active))
            row = "count", name, "active", active, nearest, source, ends
            yield PublishedRow(*row)


# model, tokens, length, FLOPs of the whole training, source
_FLOPS = (
    ("GPT-3 175B", 300e9, 1, 3.14e23, "Brown et al. (2020), table D.1"),
    ("GPT-3 13B", 300e9, 1, 2.31e22, "Brown et al. (2020), table D.1"),
    ("PaLM 540B", 780e9, 1, 2.5272e24, "Chowdhery et al. (2022), table 21"),
    ("Llama 3 405B", 15.6e12, 1, 3.8e25, "Llama team (2024), section 3.2"),
)


def _total_flops():
    for name, tokens, length, flops, source in _FLOPS:
        computed = published_models()[name].shape.training_flops(length) * tokens
        left = "attention" if length == 1 else ""
        yield PublishedRow("count", name, "FLOPs", flops, computed, source, left)


# GB of model states for 7.5 B and 128 B parameters on n ranks, stages 1 to 3
_ZERO = (
    (4, (52.5, 41.3, 30), (896, 704, 512)),
    (16, (35.6, 21.6, 7.5), (608, 368, 128)),
    (64, (31.4, 16.6, 1.88), (536, 284, 32)),
    (256, (30.4, 15.4, 0.47), (518, 263, 8)),
    (1024, (30.1, 15.1, 0.12), (513, 257, 2)),
)


def _zero():
    source = "Rajbhandari et al. (2020), table 1"
    for ranks, *columns in _ZERO:
        for billions, column in zip((7.5, 128), columns, strict=True):
            for stage, gigabytes in enumerate(column, start=1):
                states = cost.zero_memory(billions * 1e9, ranks, stage)
                name = f"ZeRO-{stage}, {billions:g} B on {ranks}"
                found = states.total_bytes
                yield PublishedRow(
                    "count", name, "memory", gigabytes * GB, found, source
                )


class _Run(NamedTuple):
    """A published step. microbatch, schedule and chunks as in a Layout."""

    model: str
    gpu: str
    gpus: int
    tp: int
    pp: int
    batch: int
    step_s: float
    mfu: float
    hfu: float = 0
    recompute: str = "selective"
    chunks: int = 1
    microbatch: int = 1


_KORTHIKANTI = (
    _Run("Megatron 22B", "A100 80GB", 8, 8, 1, 4, 1.10, 0.415, 0.437, microbatch=4),
    _Run("Megatron 175B", "A100 80GB", 64, 8, 8, 64, 13.75, 0.514, 0.528, chunks=3),
    _Run(
        "Megatron 529.6B", "A100 80GB", 280, 8, 35, 280, 37.83, 0.560, 0.570, chunks=3
    ),
    _Run("Megatron 1008B", "A100 80GB", 512, 8, 64, 512, 71.49, 0.563, 0.570),
)
# 175 B with a vocabulary of 64,000, Megatron-LM's rows: GPUs, batch, seconds, MFU
_MEGASCALE = (
    (256, 768, 40.0, 0.530),
    (512, 768, 21.2, 0.499),
    (768, 768, 15.2, 0.467),
    (1024, 768, 11.9, 0.447),
    (3072, 6144, 29.02, 0.487),
    (6144, 6144, 14.78, 0.478),
    (8192, 6144, 12.24, 0.433),
    (12288, 6144, 8.57, 0.412),
)


def _from_time():
    source = "Korthikanti et al. (2022), table 5"
    for run in _KORTHIKANTI:
        shape = published_models()[run.model].shape
        rate, peak = run.batch * 2048 / run.step_s, 312e12
        for kind, flops, published in (
            ("MFU", shape.training_flops(2048), run.mfu),
            ("HFU", shape.hardware_flops(2048, run.recompute), run.hfu),
        ):
            found = cost.mfu(flops, rate, run.gpus, peak)
            yield PublishedRow("from time", run.model, kind, published, found, source)
    for model, rate, chips, peak, share in (
        ("PaLM 540B", 238.3e3, 6144, 275e12, 0.462),
        ("MT-NLG 530B", 65.43e3, 2240, 312e12, 0.302),
    ):
        flops = published_models()[model].shape.training_flops(2048)
        found = cost.mfu(flops, rate, chips, peak)
        paper = "Chowdhery et al. (2022), table 3 and appendix B"
        yield PublishedRow("from time", model, "MFU", share, found, paper)
    wide = TransformerShape(96, 12288, 128, 64_000, biases=True, positions=2048)
    for gpus, batch, seconds, share in _MEGASCALE:
        rate = batch * 2048 / seconds
        found = cost.mfu(wide.training_flops(2048), rate, gpus, 312e12)
        name, paper = f"175B on {gpus}", "Jiang et al. (2024), MegaScale, table 2"
        yield PublishedRow("from time", name, "MFU", share, found, paper)


def _days():
    """Days of whole trainings, by Narayanan et al.'s 8 T P / (n X)."""
    source = "Narayanan et al. (2021), section 5.1"
    for model, tokens, gpus, flops_per_s, days in (
        ("GPT-3 175B", 300e9, 1024, 140e12, 34),
        ("Megatron 1008B", 450e9, 3072, 163e12, 84),
    ):
        flops = 8 * published_models()[model].shape.parameters * tokens
        found = flops / (gpus * flops_per_s) / 86400
        yield PublishedRow("from time", model, "days", days, found, source, "attention")


# parameters in billions, tp, pp, GPUs, batch, TFLOP/s of a GPU
_NARAYANAN = (
    ("1.7", 1, 1, 32, 512, 137),
    ("3.6", 2, 1, 64, 512, 138),
    ("7.5", 4, 1, 128, 512, 142),
    ("18.4", 8, 1, 256, 1024, 135),
    ("39.1", 8, 2, 512, 1536, 138),
    ("76.1", 8, 4, 1024, 1792, 140),
    ("145.6", 8, 8, 1536, 2304, 148),
    ("310.1", 8, 16, 1920, 2160, 155),
    ("529.6", 8, 35, 2520, 2520, 163),
    ("1008", 8, 64, 3072, 3072, 163),
)
EFFICIENCY = {"A100 80GB": 0.72, "H100 80GB": 0.65}  # of products; fitted once


def _predicted():
    left = "smaller products are less efficient, stragglers, loading of data"
    source = "Korthikanti et al. (2022), table 5"
    for run in _KORTHIKANTI:
        found = _planned(run, 2048).step_s
        row = "predicted", run.model, "step", run.step_s, found, source, left
        yield PublishedRow(*row)
    source = "Narayanan et al. (2021), table 1"
    for billions, tp, pp, gpus, batch, tflops in _NARAYANAN:
        model = f"Megatron {billions}B"
        sizes = model, "A100 80GB", gpus, tp, pp, batch, 0, 0
        step_s = _planned(_Run(*sizes, recompute="full"), 2048).step_s
        flops = published_models()[model].shape.hardware_flops(2048)
        found = flops * batch * 2048 / step_s / gpus
        row = "predicted", model, "FLOP/s", tflops * 1e12, found, source, left
        yield PublishedRow(*row)
    source = "Llama team (2024), table 4"
    for gpus, share in ((8192, 0.43), (16384, 0.41)):
        sizes = "Llama 3 405B", "H100 80GB", gpus, 8, 16, 2048, 0, share
        found = _planned(_Run(*sizes, recompute="none", chunks=7), 8192).mfu
        name, more = f"Llama 3 405B on {gpus}", "; chunks are an assumption"
        row = "predicted", name, "MFU", share, found, source, left + more
        yield PublishedRow(*row)


def _planned(run, length):
    """Return the plan of a published step."""
    hopper = run.gpu.startswith("H")
    cluster = GpuCluster(
        run.gpu,
        run.gpus,
        outside=LINKS["InfiniBand NDR" if hopper else "InfiniBand HDR"],
        efficiency=EFFICIENCY[run.gpu],
    )
    layout = Layout(
        tp=run.tp,
        pp=run.pp,
        dp=run.gpus // (run.tp * run.pp),
        microbatch=run.microbatch,
        schedule="interleaved" if run.chunks > 1 else "1F1B",
        chunks=run.chunks,
        recompute=run.recompute,
        sequence=run.recompute != "full",
        zero=1 if hopper else 0,
    )
    precision = PRECISIONS["18 bytes"]
    trained = TrainingRun(run.batch, length, 1e12, precision, fused=hopper)
    return plan(published_models()[run.model].shape, cluster, layout, trained)
