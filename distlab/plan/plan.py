"""A plan: memory, step time, traffic, failures, days and cost of one layout.

found = plan(llama, GpuCluster("H100 80GB", 16_384), layout, run)
found.memory_bytes, found.step_s, found.mfu, found.days
found.explain("step_s")      its formula, the numbers put in, and the result
"""

from dataclasses import replace
from functools import lru_cache
from html import escape

from distlab.cost import TransformerShape
from distlab.errors import InvalidArgument
from distlab.plan.cluster import GpuCluster
from distlab.plan.formulas import FORMULAS, compute, names_in
from distlab.plan.layout import DIMENSIONS, Layout, TrainingRun
from distlab.show.assets import style, themed
from distlab.show.table import text_report
from distlab.units import readable_bytes, readable_seconds

__all__ = ["MAIN", "Plan", "inputs", "misfit", "plan", "shown"]

# in the order in which a plan is read
MAIN = ("parameter_bytes", "gradient_bytes", "state_bytes", "activation_bytes")
MAIN += (
    "gathered",
    "memory_bytes",
    "m",
    "compute_s",
    "exposed_s",
    "bubble",
    "bubble_s",
)
MAIN += ("dp_exposed_s", "step_s", "tokens_per_s", "mfu", "nvlink_bytes", "nic_bytes")
MAIN += ("mtbf_s", "goodput", "days", "cost", "tokens_per_joule")

_STYLE = """.distlab-plan{color:var(--ink);max-width:100%}
.distlab-plan summary{cursor:pointer;padding:2px 0}
.distlab-plan summary span{display:inline-block;vertical-align:top;
font-variant-numeric:tabular-nums}
.distlab-plan summary span:nth-child(1){width:11em}
.distlab-plan summary span:nth-child(2){width:12em;font-weight:600}
.distlab-plan summary span:nth-child(3){color:var(--muted);max-width:100%}
@media (max-width:500px){.distlab-plan summary span:nth-child(1){width:10em}
.distlab-plan summary span:nth-child(2){width:auto}
.distlab-plan summary span:nth-child(3){display:block;margin-left:1.2em}}
.distlab-plan pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:2px 0 8px 1.2em;
padding-left:8px;border-left:2px solid var(--line);background:none;color:var(--ink)}"""


class Plan:
    """All numbers of a layout; each name of `FORMULAS` is an attribute."""

    def __init__(self, model, cluster, layout, run, numbers):
        self.model, self.cluster, self.layout, self.run = model, cluster, layout, run
        self._numbers = numbers

    def __getattr__(self, name):
        numbers = self.__dict__.get("_numbers", {})
        if name in numbers:
            return numbers[name]
        raise AttributeError(f"a plan has no {name!r}")

    @property
    def fits(self) -> bool:
        """Is the memory of a GPU enough?"""
        return self.memory_bytes <= self.cluster.gpu.memory_bytes

    def tokens_in(self, days: float) -> float:
        """Return the tokens that the job trains on in some days, failures included.

        Raises: InvalidArgument for less than no days.
        """
        if not days >= 0:
            raise InvalidArgument(f"days are 0 or more; got {days!r}.")
        return days * 86400 * self.tokens_per_s * self.goodput

    def __repr__(self):
        rows = [("", "", ""), *(self._row(name) for name in MAIN)]
        notes = [self._verdict, self._assumed]
        return text_report(self._headline, rows, "<><", notes)

    def _repr_html_(self):
        rest = [name for name in FORMULAS if name not in MAIN]
        more = f"<details><summary>all numbers</summary>{self._opened(rest)}</details>"
        notes = f"{self._verdict} Each number opens its formula. {self._assumed}"
        return (
            f'{style(themed(".distlab-plan"), _STYLE)}<div class="distlab-plan">'
            f"<b>{escape(self._headline)}</b><div>{escape(notes)}</div>"
            f"{self._opened(MAIN)}{more}</div>"
        )

    def _opened(self, names):
        """Return numbers as HTML, each with its formula inside."""
        found = ""
        for name in names:
            cells = "".join(f"<span>{escape(cell)}</span>" for cell in self._row(name))
            _, *lines = self.explain(name).split("\n")
            formula = escape("\n".join(line.strip() for line in lines))
            inside = f"<summary>{cells}</summary><pre>{formula}</pre>"
            found += f"<details>{inside}</details>"
        return found

    def _row(self, name):
        formula = FORMULAS[name]
        return name, shown(self._numbers[name], formula.unit), formula.meaning

    @property
    def _headline(self):
        return f"{self.layout} on {self.cluster.gpus:,} {self.cluster.gpu.name}"

    @property
    def _assumed(self):
        at = self.cluster
        slower = replace(at, link_efficiency=0.85 * at.link_efficiency)
        then = plan(self.model, slower, self.layout, self.run)
        return (
            f"Assumed: products at {at.efficiency:.0%} of the peak, links at "
            f"{at.link_efficiency:.0%} of their rates, no spare nodes; a save takes "
            f"{readable_seconds(self.save_s)}, a failure is found in {at.detect_s:.0f} "
            f"s, a restart takes {at.restart_s:.0f} s; ${at.price_per_hour:g} a GPU "
            "hour. "
            f"With links 15% slower the MFU is {then.mfu:.1%}."
        )

    @property
    def _verdict(self):
        spare = self.cluster.gpu.memory_bytes - self.memory_bytes
        if spare >= 0:
            reserved = readable_bytes(self.cluster.reserved_bytes)
            return (
                f"It fits, with {readable_bytes(spare)} to spare beside the {reserved} "
                "reserved for CUDA, NCCL and fragmentation."
            )
        return f"It does not fit: {readable_bytes(-spare)} too much."

    def explain(self, name: str) -> str:
        """Return a number's formula, with the numbers put in and the result."""
        if name not in FORMULAS:
            raise InvalidArgument(f"a plan has {', '.join(FORMULAS)}; and no {name!r}.")
        formula = FORMULAS[name]
        numbers = ((n, self._numbers[n]) for n in names_in(name))
        given = (f"{n} = {_given(n, x)}" for n, x in numbers if not callable(x))
        put_in = ", ".join(given)
        result = shown(self._numbers[name], formula.unit)
        lines = f"{name}: {formula.meaning}", formula.text, f"with {put_in}"
        return "\n  = ".join(lines).replace("= with", "  with") + f"\n  = {result}"


def _given(name, value):
    """Return a number with its unit, where the name is a formula's."""
    if name in FORMULAS:
        return shown(value, FORMULAS[name].unit)
    return value if isinstance(value, bool | str) else f"{value:.6g}"


def plan(
    model: TransformerShape, cluster: GpuCluster, layout: Layout, run: TrainingRun
) -> Plan:
    """Return the plan of a model's run in a layout on a cluster.

    Raises: InvalidArgument for sizes that do not multiply or divide.
    """
    if reason := misfit(model, cluster, run, **vars(layout)):
        raise InvalidArgument(reason[1])
    return Plan(
        model, cluster, layout, run, compute(inputs(model, cluster, layout, run))
    )


def shown(value: float, unit: str) -> str:
    """Return a number of a plan with its unit, in readable multiples."""
    if unit == "B":
        return readable_bytes(value)
    if unit == "s" and value >= 7200:
        return f"{value / 3600:.3g} h"
    if unit == "s":
        return readable_seconds(value)
    if unit == "%":
        return f"{value:.1%}"
    digits = f"{value:,.0f}" if 1000 <= abs(value) < 1e6 else f"{value:,.4g}"
    for word, size in (("billion", 1e9), ("million", 1e6)):
        if size <= abs(value) < 1000 * size:
            digits = f"{value / size:.4g} {word}"
            break
    return f"${digits}" if unit == "$" else f"{digits} {unit}".strip()


def misfit(model, cluster, run, **at) -> tuple[str, str] | None:
    """Return the reason why a layout cannot be, in short and in whole.

    at: fields of a `Layout`. None if its sizes multiply and divide.
    """
    tp, pp, cp, ep, dp = (at[name] for name in ("tp", "pp", "cp", "ep", "dp"))
    if tp * pp * cp * dp != cluster.gpus:
        return "gpus", (
            f"tp * pp * cp * dp = {tp} * {pp} * {cp} * {dp} = {tp * pp * cp * dp}, and "
            f"the cluster has {cluster.gpus} GPUs."
        )
    samples = dp * at["microbatch"]
    for what, size, divisor, by in (
        ("heads", model.heads, "tp", tp),
        ("batch", run.batch, "dp * microbatch", samples),
        ("length", run.length, "2 * cp", 2 * cp if cp > 1 else 1),
        ("experts", model.experts, "ep", ep),
        ("dp * cp", dp * cp, "ep", ep),
    ):
        if size % by:
            whole = f"{what} = {size} is not a multiple of {divisor} = {by}."
            return f"{what} not a multiple of {divisor}", whole
    chunks, m = at["chunks"], run.batch // samples
    if pp * chunks > model.layers:
        whole = f"pp * chunks = {pp * chunks} is more than layers = {model.layers}."
        return "fewer layers than stages", whole
    if (chunks > 1) != (at.get("schedule") == "interleaved"):
        whole = "schedule interleaved has chunks=2 or more, and no other has; got "
        return "chunks", f"{whole}{at.get('schedule')!r} and chunks={chunks}."
    if at.get("schedule") == "DualPipe" and (pp % 2 or m % 2):
        short = "DualPipe needs an even pp and an even number of microbatches"
        return short, f"{short}; got {pp} and {m}."
    if chunks > 1 and m % pp:
        short = "interleaved needs microbatches in groups of pp"
        return short, f"{short} = {pp}; got {m} microbatches."
    return None


def inputs(model, cluster, layout, run) -> dict:
    """Return the inputs of `formulas.compute` by name."""
    return of_model(model, run) | of_cluster(cluster) | of_run(run) | of_layout(layout)


def of_layout(layout: Layout) -> dict:
    """Return the inputs that a layout gives."""
    found = dict(vars(layout))
    overlaps = found.pop("overlap")
    return found | {f"{name}_overlaps": name in overlaps for name in DIMENSIONS}


def of_model(model: TransformerShape, run: TrainingRun) -> dict:
    """Return the inputs that a model gives at a run's length."""
    length, experts = run.length, model.expert_parameters
    layers = model.layers * model.layer_parameters
    last = model.stage_parameters(2, 1) - layers / 2

    def layer_activation_bytes(microbatch, tp, sequence, recompute):
        fused = run.fused and recompute == "none"
        return model.layer_activation_bytes(
            length,
            microbatch,
            tp=tp,
            sequence=sequence,
            recompute="selective" if fused else recompute,
        )

    return {
        "layers": model.layers,
        "width": model.width,
        "vocabulary": model.vocabulary,
        "dropout": model.dropout,
        "parameters": model.parameters,
        "layer_dense": (layers - experts) / model.layers,
        "layer_experts": experts / model.layers,
        "embedding": model.stage_parameters(2, 0) - layers / 2,
        "output": last,
        "output_alone": model.parameters
        - layers
        - model.stage_parameters(2, 0)
        + layers / 2,
        "moe_layers": model.routed_layers,
        "experts_per_token": model.experts_per_token,
        "reductions": 2 if model.parallel else 4,
        "kv_width": model.key_and_value_width,
        "layer_flops": model.layer_flops(length),
        "logits_flops": model.logits_flops,
        "attention_flops": model.attention_flops(length),
        "training_flops": model.training_flops(length),
        "layer_activation_bytes": lru_cache(None)(layer_activation_bytes),
    }


def of_cluster(cluster: GpuCluster) -> dict:
    """Return the inputs that a cluster gives; rates are those of one GPU."""
    gpu = cluster.gpu
    reached = cluster.link_efficiency
    outside = reached * cluster.outside.bytes_per_s * cluster.nics / cluster.per_node
    return {
        "gpus": cluster.gpus,
        "per_node": cluster.per_node,
        "peak": gpu.peak_flops,
        "efficiency": cluster.efficiency,
        "reserved": cluster.reserved_bytes,
        "memory_rate": gpu.memory_bytes_per_s,
        "inside_latency": gpu.inside.latency_s,
        "outside_latency": cluster.outside.latency_s,
        "inside_rate": reached * gpu.inside.bytes_per_s,
        "outside_rate": outside,
        "across_rate": outside / cluster.across,
        "ring_rate": outside / (cluster.across if cluster.scattered else 1),
        "gpu_mtbf_s": cluster.mtbf_hours * 3600,
        "recovery_s": cluster.detect_s + cluster.restart_s,
        "storage_rate": cluster.storage_bytes_per_s,
        "price": cluster.price_per_hour,
        "watts": gpu.power_w * cluster.power_factor,
    }


def of_run(run: TrainingRun) -> dict:
    """Return the inputs that a run gives."""
    precision = run.precision
    return {
        "batch": run.batch,
        "length": run.length,
        "run_tokens": run.tokens,
        "w": precision.parameter_bytes,
        "g": precision.gradient_bytes,
        "o": precision.state_bytes,
        "a": precision.activation_bytes,
    }
