"""A plan: memory, step time, traffic, failures, days and cost of one layout.

found = plan(llama, GpuCluster("H100 80GB", 16_384), layout, run)
found.memory_bytes, found.step_s, found.mfu, found.days
found.explain("step_s")      its formula, the numbers put in, and the result
"""

from distlab.cost import TransformerShape, activation_bytes
from distlab.errors import InvalidArgument
from distlab.plan.cluster import GpuCluster
from distlab.plan.formulas import FORMULAS, compute, names_in
from distlab.plan.layout import Layout, TrainingRun
from distlab.show.table import html_report, text_report
from distlab.units import readable_bytes, readable_seconds

__all__ = ["Plan", "plan"]


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

    def _rows(self):
        rows = [("number", "value", "formula")]
        for name, formula in FORMULAS.items():
            rows.append((name, shown(self._numbers[name], formula.unit), formula.text))
        return rows

    def __repr__(self):
        return text_report(self._headline, self._rows(), "<><", [])

    def _repr_html_(self):
        return html_report(self._headline, self._rows(), "<><")

    @property
    def _headline(self):
        return f"{self.layout} on {self.cluster.gpus} x {self.cluster.gpu.name}"

    def explain(self, name: str) -> str:
        """Return a number's formula, with the numbers put in and the result."""
        if name not in FORMULAS:
            raise InvalidArgument(f"a plan has {', '.join(FORMULAS)}; and no {name!r}.")
        formula = FORMULAS[name]
        put_in = ", ".join(f"{n} = {self._numbers[n]}" for n in names_in(name))
        value = self._numbers[name]
        return f"{name}: {formula.meaning}\n  = {formula.text}\n  {put_in}\n  = {value}"


def plan(
    model: TransformerShape, cluster: GpuCluster, layout: Layout, run: TrainingRun
) -> Plan:
    """Return the plan of a model's run in a layout on a cluster.

    Raises: InvalidArgument for sizes that do not multiply or divide.
    """
    check(model, cluster, layout, run)
    return Plan(
        model, cluster, layout, run, compute(inputs(model, cluster, layout, run))
    )


def shown(value: float, unit: str) -> str:
    """Return a number of a plan with its unit, in readable multiples."""
    if unit == "B":
        return readable_bytes(value)
    if unit == "s":
        return readable_seconds(value)
    return f"{value:,.4g} {unit}".strip()


def check(
    model: TransformerShape, cluster: GpuCluster, layout: Layout, run: TrainingRun
) -> None:
    """Refuse a layout that does not multiply or divide.

    Raises: InvalidArgument.
    """
    at = layout
    if at.gpus != cluster.gpus:
        raise InvalidArgument(
            f"tp * pp * cp * dp = {at.tp} * {at.pp} * {at.cp} * {at.dp} = {at.gpus}, and "
            f"the cluster has {cluster.gpus} GPUs."
        )
    for what, size, divisor, by in (
        ("heads", model.heads, "tp", at.tp),
        ("batch", run.batch, "dp * microbatch", at.dp * at.microbatch),
        ("length", run.length, "2 * cp", 2 * at.cp if at.cp > 1 else 1),
        ("experts", model.experts, "ep", at.ep),
        ("dp * cp", at.dp * at.cp, "ep", at.ep),
    ):
        if size % by:
            raise InvalidArgument(
                f"{what} = {size} is not a multiple of {divisor} = {by}."
            )
    if at.pp * at.chunks > model.layers:
        raise InvalidArgument(
            f"pp * chunks = {at.pp * at.chunks} is more than layers = {model.layers}."
        )
    m = run.batch // (at.dp * at.microbatch)
    if at.chunks > 1 and (at.schedule != "interleaved" or m % at.pp):
        raise InvalidArgument(
            f"{at.chunks} chunks take the schedule interleaved and microbatches in groups "
            f"of pp = {at.pp}; got {at.schedule} and {m} microbatches."
        )


def inputs(model, cluster, layout, run) -> dict:
    """Return the inputs of `formulas.compute` by name."""
    return (
        _of_model(model, run.length)
        | _of_cluster(cluster)
        | _of_run(run)
        | vars(layout)
    )


def _of_model(model, length):
    experts = model.expert_parameters
    return {
        "layers": model.layers,
        "width": model.width,
        "vocabulary": model.vocabulary,
        "parameters": model.parameters,
        "layer_dense": model.layer_parameters - experts / model.layers,
        "layer_experts": experts / model.layers,
        "moe_layers": model.layers if model.experts > 1 else 0,
        "experts_per_token": model.experts_per_token,
        "kv_width": 2 * model.key_value_heads * model.head_width,
        "embedding": model.stage_parameters(2, 0)
        - model.layers / 2 * model.layer_parameters,
        "output": model.stage_parameters(2, 1)
        - model.layers / 2 * model.layer_parameters,
        "output_alone": model.stage_parameters(1, 0)
        - model.layers * model.layer_parameters
        - (model.stage_parameters(2, 0) - model.layers / 2 * model.layer_parameters),
        "layer_flops": model.layer_flops(length),
        "logits_flops": model.logits_flops,
        "attention_flops": 4 * length * model.heads * model.head_width,
        "training_flops": model.training_flops(length),
        "layer_activation_bytes": lambda s, b, tp, sequence, recompute: (
            activation_bytes(
                s,
                b,
                model.width,
                model.heads,
                tp=tp,
                sequence=sequence,
                recompute=recompute,
            )
        ),
    }


def _of_cluster(cluster):
    gpu = cluster.gpu
    return {
        "gpus": cluster.gpus,
        "per_node": cluster.per_node,
        "peak": gpu.peak_flops,
        "efficiency": cluster.efficiency,
        "reserved": cluster.reserved_bytes,
        "memory_rate": gpu.memory_bytes_per_s,
        "inside_rate": gpu.inside.bytes_per_s,
        "outside_rate": cluster.outside.bytes_per_s * cluster.nics / cluster.per_node,
        "gpu_mtbf_s": cluster.mtbf_hours * 3600,
        "recovery_s": cluster.detect_s + cluster.restart_s,
        "storage_rate": cluster.storage_bytes_per_s,
        "price": cluster.price_per_hour,
        "watts": gpu.power_w * cluster.power_factor,
    }


def _of_run(run):
    precision = run.precision
    return {
        "batch": run.batch,
        "length": run.length,
        "run_tokens": run.tokens,
        "w": precision.parameter_bytes,
        "g": precision.gradient_bytes,
        "o": precision.state_bytes,
        "a": precision.activation_bytes,
        "fused": run.fused,
    }
