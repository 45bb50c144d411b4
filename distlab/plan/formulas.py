"""The planner's formulas, as data: a number is computed from the text that it shows.

    FORMULAS["m"].text     "batch / (dp * microbatch)"

Names in a text are inputs (sizes of the model, the layout, the cluster and the run) or
formulas above it. All sizes are of one GPU unless they say otherwise. Ranks are placed
in the order tp, cp, dp, pp, as Megatron places them: tp next to each other in a node.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from inspect import signature
from typing import NamedTuple

from distlab import cost

__all__ = ["FORMULAS", "LEVELS", "Formula", "compute", "names_in", "walk"]


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
    "copies": Formula(
        _N, "2 if schedule == 'DualPipe' else 1", "stages whose parameters a GPU has"
    ),
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
        "copies * w * (dense_parameters / (n if zero > 2 else 1)"
        " + expert_parameters / (k if zero > 2 else 1))",
        "parameters",
    ),
    "gradient_bytes": Formula(
        _B,
        "copies * g * (dense_parameters / (n if zero > 1 else 1)"
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
        "layer_activation_bytes(microbatch, tp, sequence, recompute) / cp * a / 2",
        "activations of a layer and a microbatch",
    ),
    "first_activations": Formula(
        _B,
        "in_flight * (end_layers * layer_activations"
        " + dropout * tokens * width / (tp if sequence else 1))",
        "activations on the first stage, at its fullest",
    ),
    "second_activations": Formula(
        _B,
        "stage_layers * layer_activations"
        " * microbatches_in_flight(schedule, pp, m, chunks=chunks, stage=pp > 1)",
        "activations on the second stage, which may have a layer more",
    ),
    "last_activations": Formula(
        _B,
        "end_layers * layer_activations"
        " * microbatches_in_flight(schedule, pp, m, chunks=chunks, stage=pp - 1)"
        " + 4 * tokens * (width / (tp if sequence else 1) + vocabulary / tp)",
        "activations on the last stage, with float32 logits",
    ),
    "again_bytes": Formula(
        _B,
        "layer_activation_bytes(microbatch, tp, sequence, 'selective') / cp * a / 2"
        " * (recompute == 'full')",
        "activations of the layer that is being computed again",
    ),
    "activation_bytes": Formula(
        _B,
        "max(first_activations, second_activations, last_activations) + again_bytes",
        "activations of the fullest stage",
    ),
    "gathered": Formula(
        _B,
        "2 * w * layer_dense / tp * (zero == 3)",
        "parameters of a layer, gathered, and of the next one",
    ),
    "memory_bytes": Formula(
        _B,
        "parameter_bytes + gradient_bytes + state_bytes + activation_bytes + gathered"
        " + reserved",
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
        " else attention_flops if recompute == 'selective' else 0)",
        "computed a second time in backward",
    ),
    "products_s": Formula(
        _S, "(3 * flops + recomputed) / (peak * efficiency)", "products of a microbatch"
    ),
    "elementwise_s": Formula(
        _S,
        "stage_layers / cp * a / 2 / memory_rate * ("
        "(7 if recompute == 'full' else 5) * layer_activation_bytes(microbatch, tp,"
        " sequence, 'none') + 2 * (recompute == 'selective') * ("
        "layer_activation_bytes(microbatch, tp, sequence, 'none')"
        " - layer_activation_bytes(microbatch, tp, sequence, recompute)))",
        "each activation written and read in forward, read in backward, its gradient"
        " written and read; two times more if computed again",
    ),
    "compute_s": Formula(
        _S, "products_s + elementwise_s", "compute of a microbatch on the slowest stage"
    ),
    # communication of a microbatch; a ring of k ranks takes k - 1 latencies a pass
    "tp_bytes": Formula(
        _B,
        "stage_layers * reductions * (3 if recompute == 'full' else 2)"
        " * (tp - 1) / tp * tokens * width * a",
        "tensor parallelism: all-reduces of a layer's activations",
    ),
    "tp_s": Formula(
        _S,
        "tp_bytes / inside_rate + stage_layers * 8 * (tp - 1) * inside_latency"
        " if tp <= per_node"
        " else tp_bytes / min(inside_rate, per_node * outside_rate)"
        " + stage_layers * 8 * (tp - 1) * outside_latency",
        "tensor parallelism; beyond a node, a ring through each of its NICs",
    ),
    "cp_bytes": Formula(
        _B,
        "stage_layers * 3 * (cp - 1) / cp * microbatch * length * kv_width / tp * a",
        "context parallelism: keys and values there twice, their gradients back",
    ),
    "cp_s": Formula(
        _S,
        "cp_bytes / inside_rate + stage_layers * 3 * (cp - 1) * inside_latency"
        " if tp * cp <= per_node"
        " else cp_bytes / outside_rate + stage_layers * 3 * (cp - 1) * outside_latency",
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
        "ep_bytes / inside_rate if tp * ep <= per_node"
        " else ep_bytes / across_rate + ceil(moe_layers / pp) * 4 * outside_latency",
        "expert parallelism",
    ),
    "pp_bytes": Formula(
        _B,
        "2 * chunks * tokens * width * a / (tp if sequence else 1) * (pp > 1)",
        "pipeline: activations on, gradients back",
    ),
    "pp_s": Formula(
        _S,
        "pp_bytes / inside_rate if gpus <= per_node"
        " else pp_bytes / across_rate + 2 * chunks * (pp > 1) * outside_latency",
        "pipeline",
    ),
    "hidden_s": Formula(
        _S,
        "min(compute_s, tp_overlaps * tp_s + cp_overlaps * cp_s + ep_overlaps * ep_s"
        " + pp_overlaps * pp_s)",
        "communication beside compute",
    ),
    "exposed_s": Formula(
        _S, "tp_s + cp_s + ep_s + pp_s - hidden_s", "exposed communication"
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
        " * (g * (m if zero > 1 else 1)"
        " + (2 * m * w if zero == 3 else w if zero else g))",
        "data parallelism: gradients scattered, parameters gathered",
    ),
    "dp_s": Formula(
        _S,
        "dp_bytes / inside_rate if n <= near"
        " else dp_bytes / min(inside_rate, near * ring_rate)"
        " + (n / near - 1) * outside_latency"
        " * (2 + (zero == 3) * (3 * m * stage_layers - 2))",
        "data parallelism: rings through NICs; of each layer, if parameters are cut",
    ),
    "dp_exposed_s": Formula(
        _S,
        "max(0, dp_s - dp_overlaps * compute_s * (m if zero > 1 else 1))",
        "of that, what does not fit beside compute",
    ),
    # the step
    "microbatch_s": Formula(
        _S, "compute_s + exposed_s", "a microbatch on the slowest stage"
    ),
    "weights": Formula(
        "%",
        "(layer_flops - attention_flops) * tokens / tp * stage_layers"
        " / (3 * flops + recomputed)",
        "the backward of weights, as a share of compute",
    ),
    "bubble": Formula(
        "%",
        "pipeline_bubble(schedule, pp, m, chunks=chunks, weights=weights)",
        "idle time over busy time",
    ),
    "bubble_s": Formula(_S, "m * microbatch_s * bubble", "the pipeline's bubble"),
    "optimizer_s": Formula(
        _S,
        "2 * state_bytes / memory_rate",
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
        "%",
        "training_flops * tokens_per_s / (gpus * peak)",
        "model FLOPs utilization, attention without a mask, as Megatron-LM counts it",
    ),
    # months
    "checkpoint_bytes": Formula(_B, "parameters * (w + o)", "a checkpoint, of all"),
    "save_s": Formula(_S, "checkpoint_bytes / storage_rate", "a save stops the job"),
    "mtbf_s": Formula(_S, "job_mtbf(gpu_mtbf_s, gpus)", "between failures of the job"),
    "interval_s": Formula(_S, "daly(save_s, mtbf_s)", "work between two saves"),
    "goodput": Formula(
        "%",
        "goodput_of(interval_s, save_s, recovery_s, mtbf_s)",
        "share of the time whose work is kept",
    ),
    "days": Formula(
        "days", "run_tokens / tokens_per_s / goodput / 86400", "the whole run"
    ),
    "gpu_hours": Formula("h", "days * 24 * gpus", "GPU hours"),
    "cost": Formula("$", "gpu_hours * price", "the whole run"),
    "nvlink_bytes": Formula(
        _B,
        "m * (tp_bytes * (tp <= per_node) + cp_bytes * (tp * cp <= per_node)"
        " + ep_bytes * (tp * ep <= per_node) + pp_bytes * (gpus <= per_node))"
        " + dp_bytes * (1 if n <= near else 1 - 1 / near)",
        "sent through NVLink by a GPU in a step",
    ),
    "nic_bytes": Formula(
        _B,
        "m * (tp_bytes * (tp > per_node) + cp_bytes * (tp * cp > per_node)"
        " + ep_bytes * (tp * ep > per_node) + pp_bytes * (gpus > per_node))"
        " + dp_bytes / near * (n > near)",
        "sent through a NIC, its rail, by a GPU in a step",
    ),
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


LEVELS = (("tp", "pp", "cp", "ep", "dp"), ("microbatch",), ("schedule", "chunks"))
LEVELS += (("recompute",), ("zero",))


def compute(inputs: dict) -> dict:
    """Return the inputs and all formulas, computed from them."""
    lines = [f"{name} = {formula.text}" for name, formula in FORMULAS.items()]
    return _function(tuple(inputs), (*lines, "return locals()"))(**inputs)


def walk(inputs: dict, choices: Sequence[Callable], limit: float, by: str) -> Iterator:
    """Yield (fields, memory_bytes, `by`) for each layout; None for `by` above `limit`.

    choices: for each of `LEVELS` a function that returns the values of its fields; its
    arguments have names of inputs, fields or formulas of the levels above. A formula is
    computed in the outermost loop that it can be.
    """
    fields = [name for level in LEVELS for name in level]
    constants = {name: value for name, value in inputs.items() if name not in fields}
    depths = dict.fromkeys(constants, 0)
    depths |= {name: 1 + k for k, level in enumerate(LEVELS) for name in level}
    memory, deepest = _needed("memory_bytes"), len(LEVELS)
    needed = [*memory, *(name for name in _needed(by) if name not in memory)]
    for name in needed:
        depths[name] = max((depths[n] for n in names_in(name)), default=0)
    lines, found = [], f"({', '.join(fields)}), memory_bytes"
    for depth in range(deepest + 1):
        tab = _TAB * depth
        if depth:
            above = ", ".join(signature(choices[depth - 1]).parameters)
            level = ", ".join(LEVELS[depth - 1])
            lines.append(f"{tab[4:]}for {level} in choices[{depth - 1}]({above}):")
        for name in needed:
            if depths[name] == depth:
                lines.append(f"{tab}{name} = {FORMULAS[name].text}")
            if name == "memory_bytes" and depth == deepest:
                reject = f"yield {found}, None; continue"
                lines.append(f"{tab}if memory_bytes > limit: {reject}")
    lines.append(f"{_TAB * deepest}yield {found}, {by}")
    walked = _function((*constants, "choices", "limit"), tuple(lines))
    return walked(**constants, choices=choices, limit=limit)


@cache
def _function(given: tuple[str, ...], lines: tuple[str, ...]):
    """Return a function with these arguments and this body."""
    found = dict(_CALLS)
    body = "".join(f"\n{_TAB}{line}" for line in lines)
    exec(f"def formulas({', '.join(given)}):{body}", found)
    return found["formulas"]


@cache
def _needed(name: str) -> list[str]:
    """Return the formulas that a name stands on, and itself, in their order."""
    if name not in FORMULAS:
        return []
    found = {name}.union(*(_needed(each) for each in names_in(name)))
    return [each for each in FORMULAS if each in found]


@cache
def names_in(formula: str) -> list[str]:
    """Return the names in a formula's text, in their order, without calls."""
    code = compile(FORMULAS[formula].text, formula, "eval")
    return [name for name in code.co_names if name not in _CALLS]


_TAB = "    "
