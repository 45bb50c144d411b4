"""The planner's formulas, as data: a number is computed from the text that it shows.

    FORMULAS["m"].text     "batch / (dp * microbatch)"

Names in a text are inputs (sizes of the model, the layout, the cluster and the run) or
formulas above it. All sizes are of one GPU unless they say otherwise. Ranks are placed
in the order tp, cp, dp, pp, as Megatron places them: tp next to each other in a node.
"""

import math
from functools import cache
from types import CodeType
from typing import NamedTuple

from distlab import cost

__all__ = ["FORMULAS", "Formula", "compute", "names_in"]


class Formula(NamedTuple):
    """A number of a plan: its unit, the text that computes it, and its meaning."""

    unit: str
    text: str
    meaning: str


_B, _S, _N = "B", "s", ""

FORMULAS = {
    # the cut
    "m": Formula(_N, "batch / (dp * microbatch)", "microbatches of a replica's step"),
    "stage_layers": Formula(_N, "ceil(layers / pp)", "layers of the fullest stage"),
    "end_layers": Formula(
        _N,
        "stage_layers - (stage_layers * pp > layers)",
        "layers of the first and the last stage, if layers don't divide evenly",
    ),
    "tokens": Formula(_N, "microbatch * length / cp", "tokens of a microbatch"),
    "n": Formula(_N, "dp * cp", "ranks that share a stage's dense parameters"),
    "k": Formula(_N, "dp * cp / ep", "ranks that share a stage's experts"),
    # memory
    "dense_parameters": Formula(
        _N,
        "(stage_layers * layer_dense + max(embedding, output) * (pp > 1)"
        " + (embedding + output_alone) * (pp == 1)) / tp",
        "parameters of the fullest stage, without routed experts",
    ),
    "expert_parameters": Formula(
        _N, "stage_layers * layer_experts / (ep * tp)", "parameters of routed experts"
    ),
    "parameter_bytes": Formula(
        _B,
        "w * (dense_parameters / (n if zero > 2 else 1)"
        " + expert_parameters / (k if zero > 2 else 1))",
        "parameters",
    ),
    "gradient_bytes": Formula(
        _B,
        "g * (dense_parameters / (n if zero > 1 else 1)"
        " + expert_parameters / (k if zero > 1 else 1))",
        "gradients",
    ),
    "state_bytes": Formula(
        _B,
        "o * (dense_parameters / (n if zero else 1)"
        " + expert_parameters / (k if zero else 1))",
        "the optimizer's state",
    ),
    "in_flight": Formula(
        _N,
        "microbatches_in_flight(schedule, pp, m, chunks=chunks)",
        "microbatches whose activations the first stage keeps",
    ),
    "layer_activations": Formula(
        _B,
        "layer_activation_bytes(length, microbatch, tp, sequence, recompute) / cp",
        "activations of a layer and a microbatch",
    ),
    "activation_bytes": Formula(
        _B,
        "in_flight * stage_layers * layer_activations"
        " + (4 * tokens * (width / (tp if sequence else 1) + vocabulary / tp)"
        " if pp == 1 else 0)",
        "activations on the first stage, at its fullest",
    ),
    "memory_bytes": Formula(
        _B,
        "parameter_bytes + gradient_bytes + state_bytes + activation_bytes + reserved",
        "memory of the fullest GPU",
    ),
    # compute
    "flops": Formula(
        "FLOP",
        "tokens / tp * max(stage_layers * layer_flops,"
        " end_layers * layer_flops + logits_flops)",
        "forward of a microbatch on the slowest stage",
    ),
    "recomputed": Formula(
        "FLOP",
        "tokens / tp * stage_layers * (layer_flops if recompute == 'full'"
        " else attention_flops if recompute == 'selective' and not fused else 0)",
        "computed a second time in backward",
    ),
    "compute_s": Formula(
        _S, "(3 * flops + recomputed) / (peak * efficiency)", "products of a microbatch"
    ),
    # communication of a microbatch
    "tp_bytes": Formula(
        _B,
        "stage_layers * (12 if recompute == 'full' else 8)"
        " * (tp - 1) / tp * tokens * width * a",
        "tensor parallelism: all-reduces of a layer's activations",
    ),
    "tp_s": Formula(
        _S,
        "tp_bytes / (inside_rate if tp <= per_node else outside_rate)",
        "tensor parallelism",
    ),
    "cp_bytes": Formula(
        _B,
        "stage_layers * 3 * (cp - 1) / cp * microbatch * length * kv_width / tp * a",
        "context parallelism: keys and values there twice, their gradients back",
    ),
    "cp_s": Formula(
        _S,
        "cp_bytes / (inside_rate if tp * cp <= per_node else outside_rate)",
        "context parallelism",
    ),
    "ep_bytes": Formula(
        _B,
        "ceil(moe_layers / pp) * 4 * (ep - 1) / ep * tokens / (tp if sequence else 1)"
        " * experts_per_token * width * a",
        "expert parallelism: tokens to their experts and back, in both directions",
    ),
    "ep_s": Formula(
        _S,
        "ep_bytes / (inside_rate if tp * ep <= per_node else outside_rate)",
        "expert parallelism",
    ),
    "pp_bytes": Formula(
        _B,
        "2 * chunks * tokens * width * a / (tp if sequence else 1) * (pp > 1)",
        "pipeline: activations on, gradients back",
    ),
    "pp_s": Formula(
        _S,
        "pp_bytes / (inside_rate if gpus <= per_node else outside_rate)",
        "pipeline",
    ),
    # communication of a step
    "near": Formula(
        _N,
        "min(n, max(1, per_node // tp))",
        "ranks of a data parallel group on one node, a NIC each",
    ),
    "dp_bytes": Formula(
        _B,
        "(dense_parameters * (n - 1) / n + expert_parameters * (k - 1) / k)"
        " * (g + w * (2 * m if zero == 3 else 1)"
        " + g * (m - 1 if zero > 1 else 0))",
        "data parallelism: gradients scattered, parameters gathered",
    ),
    "dp_s": Formula(
        _S,
        "dp_bytes / (inside_rate if n <= near else min(inside_rate,"
        " near * outside_rate))",
        "data parallelism",
    ),
    "dp_exposed_s": Formula(
        _S,
        "max(0, dp_s - compute_s * (m if zero > 1 else 1))",
        "of that, what does not fit beside compute",
    ),
    # the step
    "microbatch_s": Formula(
        _S, "compute_s + tp_s + cp_s + ep_s + pp_s", "a microbatch on the slowest stage"
    ),
    "bubble": Formula(
        _N,
        "pipeline_bubble(schedule, pp, m, chunks=chunks)",
        "idle time over busy time",
    ),
    "bubble_s": Formula(_S, "m * microbatch_s * bubble", "the pipeline's bubble"),
    "optimizer_s": Formula(
        _S,
        "2 * (state_bytes + g * state_bytes / o) / memory_rate",
        "the optimizer reads and writes its state",
    ),
    "step_s": Formula(
        _S,
        "m * microbatch_s + bubble_s + dp_exposed_s + optimizer_s",
        "a step",
    ),
    # rates
    "tokens_per_s": Formula("tokens/s", "batch * length / step_s", "of all GPUs"),
    "mfu": Formula(
        _N, "training_flops * tokens_per_s / (gpus * peak)", "model FLOPs utilization"
    ),
    # months
    "checkpoint_bytes": Formula(_B, "parameters * (w + o)", "a checkpoint, of all"),
    "save_s": Formula(_S, "checkpoint_bytes / storage_rate", "a save stops the job"),
    "mtbf_s": Formula(_S, "job_mtbf(gpu_mtbf_s, gpus)", "between failures of the job"),
    "interval_s": Formula(_S, "daly(save_s, mtbf_s)", "work between two saves"),
    "goodput": Formula(
        _N,
        "goodput_of(interval_s, save_s, recovery_s, mtbf_s)",
        "share of the time whose work is kept",
    ),
    "days": Formula(
        "days", "run_tokens / tokens_per_s / goodput / 86400", "the whole run"
    ),
    "gpu_hours": Formula("h", "days * 24 * gpus", "GPU hours"),
    "cost": Formula("$", "gpu_hours * price", "the whole run"),
    "tokens_per_joule": Formula(
        "tokens/J", "tokens_per_s * goodput / (gpus * watts)", "at the socket"
    ),
}

_CALLS = {
    "ceil": math.ceil,
    "max": max,
    "min": min,
    "goodput_of": cost.goodput,
    **{
        name: getattr(cost, name)
        for name in ("daly", "job_mtbf", "microbatches_in_flight", "pipeline_bubble")
    },
}


@cache
def _code(first: str, last: str) -> CodeType:
    names = list(FORMULAS)
    chosen = names[names.index(first) : names.index(last) + 1]
    lines = (f"{name} = {FORMULAS[name].text}" for name in chosen)
    return compile("\n".join(lines), "<formulas of distlab.plan>", "exec")


def compute(inputs: dict, *, first: str = "m", last: str = "tokens_per_joule") -> dict:
    """Return the inputs with the formulas from `first` to `last` computed from them."""
    found = dict(inputs)
    exec(_code(first, last), _CALLS, found)
    return found


def names_in(formula: str) -> list[str]:
    """Return the names in a formula's text, in their order, without calls."""
    code = compile(FORMULAS[formula].text, formula, "eval")
    return [name for name in code.co_names if name not in _CALLS]
