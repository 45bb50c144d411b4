"""Exercise 19: memory of a GPU, a run under failures, and the fastest layout.

The oracle is the planner, `distlab.plan`, on models and layouts that are drawn for each
case; the learner's process lacks it, and `distlab.cost`.

Source: the formulas of lesson 19, which names those of each paper.
"""

import math
from random import SystemRandom

from distlab import plan as planner
from distlab.checks import kit
from distlab.checks.kit import Hint, Wrong, check
from distlab.cost import TransformerShape
from distlab.units import GB

WITHOUT = (*kit.modules_of("distlab.plan"), *kit.modules_of("distlab.cost"))
RESERVED, ROOM = 6 * GB, 80 * GB
RATE = 989.4e12 * 0.65  # FLOP/s at most, as the planner assumes
_random = SystemRandom()

CONTRACT = kit.Contract(
    gradients={
        "2 bytes": "a gradient has 2 bytes",
        "4 bytes": "a gradient has 4 bytes, as Megatron-LM accumulates it",
    },
    optimizer={
        "12 bytes": "the optimizer has 12 bytes of state for a parameter",
        "8 bytes": "the optimizer has 8 bytes of state for a parameter",
    },
    moments={
        "99": "spares suffice in 99 of 100 moments",
        "95": "spares suffice in 95 of 100 moments",
        "999": "spares suffice in 999 of 1000 moments",
    },
)
_SUFFICE = {"95": 0.95, "999": 0.999}


def _sizes(contract):
    """Return the bytes of a gradient, and of the optimizer's state."""
    return (
        4 if contract.get("gradients") == "4 bytes" else 2,
        8 if contract.get("optimizer") == "8 bytes" else 12,
    )


@check("{}")
def memory(function, which, contract=kit.PUBLISHED):
    """Check the bytes of the fullest GPU, for eight layouts of drawn models."""
    failed = []
    for _ in range(8):
        shape, layout, run = _drawn(which, _sizes(contract))
        plan = planner.plan(shape, _cluster(layout), layout, run)
        given = model_of(shape), _layout(layout, run), RESERVED
        yours = kit.call(_probe, function, *given, without=WITHOUT)
        number = isinstance(yours, int | float) and math.isfinite(yours) and yours > 0
        if not number or abs(yours - plan.memory_bytes) > 0.01 * plan.memory_bytes:
            failed.append((plan, yours if number else math.nan, yours, given))
    if failed:
        plan, _, yours, (model, layout, _) = failed[0]
        facts = [_facts(n, each, about, contract) for each, n, _, about in failed]
        shown = yours if facts[0]["nan"] else f"{yours / GB:.3f} GB"
        found = f"expected {plan.memory_bytes / GB:.3f} GB\nyours    {shown}\n"
        found += f"model    {model}\nlayout   {layout}"
        alike = {name: all(each[name] for each in facts) for name in facts[0]}
        raise Wrong(found, **alike)


_MISTAKES = ("gib", "no_reserve", "one_microbatch", "all_microbatches", "no_ends")
_MISTAKES += ("both_ends", "whole_states", "whole_activations", "states_only")
_MISTAKES += ("mean_layers", "no_logits")


def _facts(yours, plan, given, contract):
    """Return the known mistakes that give this number, and whether it is too large."""
    right = plan.memory_bytes
    sides = {"large": yours > right, "small": yours < right, "nan": math.isnan(yours)}
    known = {name: _mistaken(name, _sizes(contract), *given) for name in _MISTAKES}
    return sides | {name: abs(yours / known[name] - 1) < 1e-4 for name in known}


def _mistaken(mistake, sizes, model, layout, reserved):
    """Return the bytes that someone computes who makes one mistake."""
    tp, pp, dp, zero = (layout[name] for name in ("tp", "pp", "dp", "zero"))
    most = model["layers"] / pp
    most = most if mistake == "mean_layers" else math.ceil(most)
    ends = most - (most * pp > model["layers"])
    matrices = model["embedding"], model["output"]
    extra = sum(matrices) if pp == 1 or mistake == "both_ends" else max(matrices)
    extra = 0 if mistake == "no_ends" else extra
    gradient, optimizer = sizes
    optimizer /= dp if zero and mistake != "whole_states" else 1
    states = 2 + gradient / (dp if zero > 1 else 1) + optimizer
    m = layout["batch"] // (dp * layout["microbatch"])
    kept = {"one_microbatch": 1, "all_microbatches": m}.get(mistake, min(pp, m))
    logits = 0 if mistake in ("no_logits", "one_microbatch") else model["logits"]
    last = ends * model["kept"] + logits
    tokens = layout["microbatch"] * layout["length"]
    tokens *= {"whole_activations": tp, "states_only": 0}.get(mistake, 1)
    activations = tokens * max(kept * ends * model["kept"], last)
    found = (states * (most * model["layer"] + extra) + activations) / tp
    found += reserved * (mistake != "no_reserve")
    return found * GB / 2**30 if mistake == "gib" else found


def _drawn(which, sizes=(2, 12)):
    """Return a model, a layout and a run whose first or last stage is the fullest."""
    while True:
        heads = _random.choice((16, 32, 64))
        shape = TransformerShape(
            _random.choice((10, 14, 18, 22)) if which == "uneven stages"
            else 8 * _random.randint(3, 12),
            heads * 128, heads, 256 * _random.randint(100, 600), gated=True,
            tied=which == "tied embeddings", key_value_heads=_random.choice((4, 8)),
            mlp_width=heads * 384,
        )  # fmt: skip
        one = which == "one stage"
        stages = (4, 8) if which == "uneven stages" else (2, 4, 8)
        layout = planner.Layout(
            tp=_random.choice((1, 2, 4)), pp=1 if one else _random.choice(stages),
            dp=_random.choice((1, 2, 4, 8)), zero=_random.choice((0, 1, 2)),
            microbatch=_random.choice((1, 2)), overlap=(),
        )  # fmt: skip
        batch = layout.dp * layout.microbatch * _random.choice((1, 2, 3, 16))
        length = 1024 * _random.choice((1, 2, 4))
        precision = planner.Precision(2, *sizes)
        run = planner.TrainingRun(batch, length, 1e11, precision)
        plan = planner.plan(shape, _cluster(layout), layout, run)
        if _ends_lead(plan):
            return shape, layout, run


def _ends_lead(plan):
    """Return True if the first stage or the last is the fullest, as step 1 says."""
    ends = plan.first_activations, plan.last_activations
    return plan.second_activations <= max(ends)


def _cluster(layout, **how):
    return planner.GpuCluster(
        "H100 80GB", layout.gpus, per_node=8 if layout.gpus % 8 == 0 else layout.gpus,
        reserved_bytes=RESERVED, **how,
    )  # fmt: skip


def model_of(shape) -> dict:
    """Return a model as plain numbers."""
    first = planner.plan(
        shape, planner.GpuCluster("H100 80GB", 1), planner.Layout(overlap=()),
        planner.TrainingRun(batch=1, length=1024, tokens=1e9),
    )  # fmt: skip
    kept = first.layer_activations / 1024
    return {
        "layers": shape.layers,
        "layer": first.layer_dense,
        "embedding": first.embedding,
        "output": first.output_alone,
        "kept": kept,
        "logits": 4 * (shape.width + shape.vocabulary),
        "flops": shape.training_flops(1024),
    }


def _layout(layout, run):
    names = ("tp", "pp", "dp", "zero", "microbatch")
    sizes = {name: getattr(layout, name) for name in names}
    return sizes | {"batch": run.batch, "length": run.length}


def layout_of(plan) -> dict:
    """Return a plan's layout as plain numbers, with the bytes of its fullest GPU."""
    return _layout(plan.layout, plan.run) | {"memory": plan.memory_bytes}


def _probe(function, *given):
    return kit.called(function, *given)


@check("{}")
def survives(function, which, contract=kit.PUBLISHED):
    """Check the interval, the days and the spare nodes of a run under failures."""
    for _ in range(6):
        job = _job(which)
        yours = kit.call(_probe, function, job, without=WITHOUT)
        mtbf_s = job["gpu_mtbf_h"] * 3600 / job["gpus"]
        recovery_s = job["detect_s"] + job["restart_s"]
        best_s = math.sqrt(2 * job["save_s"] * mtbf_s)
        best = _goodput(best_s, job["save_s"], recovery_s, mtbf_s)
        if best <= 0:
            if yours is not None:
                raise _lost(job, "None: no interval lets it finish", yours, hopeless=1)
            continue
        _judge(job, yours, mtbf_s, recovery_s, best, contract)


def _judge(job, yours, mtbf_s, recovery_s, best, contract):
    work_days = job["steps"] * job["step_s"] / 86400
    right = work_days / best
    right_s = math.sqrt(2 * job["save_s"] * mtbf_s)
    suffice = _SUFFICE.get(contract.get("moments"), 0.99)
    spares = _spares(job["nodes"], mtbf_s, job["repair_h"] * 3600, suffice)
    expected = f"about {right:.2f} days with {spares} spare nodes"
    shaped = isinstance(yours, list | tuple) and len(yours) == 3
    numbers = shaped and all(isinstance(x, int | float) for x in yours)
    if not numbers or not yours[0] > 0:
        raise _lost(job, expected, yours, shape=True, hopeless=yours is None)
    interval_s, days, extra = yours
    theirs = _goodput(interval_s, job["save_s"], recovery_s, mtbf_s)
    without = _goodput(interval_s, job["save_s"], 0, mtbf_s)
    facts = {
        "interval": theirs < best - 0.004,
        "one_gpu": _near(interval_s, right_s * math.sqrt(job["gpus"])),
        "no_recovery": not _near(days, right)
        and without > 0 and _near(days, work_days / without),
        "no_failures": not _near(days, right) and _near(days, work_days),
        "days": not _near(days, right),
        "spares": extra != spares, "few": extra < spares,
    }  # fmt: skip
    if facts["interval"] or facts["days"] or facts["spares"]:
        raise _lost(job, expected, yours, **facts)


def _goodput(interval_s, save_s, recovery_s, mtbf_s):
    """Return the share of the time whose work is kept, to first order."""
    lost = save_s / interval_s + interval_s / (2 * mtbf_s) + recovery_s / mtbf_s
    return 1 - lost


def _near(a, b):
    return abs(a - b) <= 0.01 * abs(b)


def _spares(nodes, mtbf_s, repair_s, suffice):
    """Return the fewest spares that suffice in this share of all moments."""
    mean, spares, within = repair_s / mtbf_s, 0, 0.0
    term = math.exp(-mean)
    while True:
        within += term
        if within >= suffice or spares >= nodes:
            return spares
        spares += 1
        term *= mean / spares


def _lost(job, expected, yours, **facts):
    return Wrong(f"job      {job}\nexpected {expected}\nyours    {yours!r}", **facts)


def _job(which):
    gpus = 8 if which == "one node" else 8 * _random.choice((64, 256, 1024, 2048))
    job = {
        "gpus": gpus, "nodes": gpus // 8, "gpu_mtbf_h": _random.uniform(3e4, 6e4),
        "steps": _random.randint(100_000, 900_000), "step_s": _random.uniform(2, 8),
        "save_s": _random.uniform(3, 60), "detect_s": _random.uniform(20, 600),
        "restart_s": _random.uniform(120, 900), "repair_h": _random.uniform(6, 60),
    }  # fmt: skip
    if which == "hopeless":  # in most, a recovery alone takes less than M
        mtbf_s = _random.uniform(0.9, 1.5) * (job["detect_s"] + job["restart_s"])
        job |= {"gpu_mtbf_h": mtbf_s * gpus / 3600, "save_s": mtbf_s / 10}
    return job


@check("{}")
def fastest(function, which, contract=kit.PUBLISHED):
    """Check the layout that is chosen, and how many steps were computed for it."""
    gpus = 64 if which == "nothing fits" else int(which.split()[0])
    for shape, batch in _large(which, gpus):
        _choice(function, shape, gpus, planner.TrainingRun(batch, 2048, 1e12))


def _choice(function, shape, gpus, run):
    plans = list(plans_of(shape, gpus, run))
    _random.shuffle(plans)
    model = model_of(shape) | {"flops": shape.training_flops(2048)}
    layouts = [layout_of(p) for p in plans]
    given = model, layouts, ROOM, RATE

    asked = []

    def answer(rank, index, step):
        asked.append(index)
        return plans[index].step_s

    report = kit.on_ranks(
        _ask, function, [0], args=(given,), answers=answer, without=WITHOUT
    )
    yours, fit = report.results[0], [p for p in plans if p.fits]
    if not fit:
        if yours is not None or asked:
            raise _other("None, and no step computed", yours, asked, nothing=True)
        return
    best = min(fit, key=lambda p: p.step_s)
    right, needed = plans.index(best), _needed(plans, best, model, run)
    expected = f"layout {right}, {layouts[right]}: {best.step_s:.2f} s"
    if yours != right:
        chosen = type(yours) is int and 0 <= yours < len(plans)
        facts = {"too_large": chosen and not plans[yours].fits, "other": chosen}
        raise _other(expected, yours, asked, **facts)
    if len(asked) > 1.1 * needed + 2:
        found = f"{expected}, with {needed} steps computed"
        facts = {"too_large": not all(plans[index].fits for index in asked)}
        facts |= {"all": len({*asked}) >= len(fit), "twice": len({*asked}) < len(asked)}
        raise _other(found, yours, asked, many=True, **facts)


def _ask(comm, function, given, rank):
    return kit.called(function, *given, lambda index: comm.ask(index))


def _other(expected, yours, asked, **facts):
    found = f"expected {expected}\nyours    {yours!r}, {len(asked)} steps computed"
    return Wrong(found, **facts)


def _needed(plans, best, model, run):
    """Return the number of layouts that fit with a lower bound below the best step."""
    return sum(p.fits and _bound_s(p, model, run) < best.step_s for p in plans)


def _bound_s(plan, model, run):
    layout = plan.layout
    m = run.batch / (layout.dp * layout.microbatch)
    flops = model["flops"] * run.batch * run.length / layout.gpus
    return flops / RATE * (1 + (layout.pp - 1) / m)


def _large(which, gpus):
    """Return models, each with a batch: the best layout has one stage, then more."""
    if which == "nothing fits":
        sizes = [(126, 128, 512)]
    else:
        one = _random.choice(((48, 48), (56, 48), (64, 64)))
        more = _random.choice(((80, 64, 4), (80, 80, 8), (128, 64, 8)))
        sizes = [(*one, 512), (*more[:2], more[2] * gpus)]
    _random.shuffle(sizes)
    return [
        (TransformerShape(
            layers, heads * 128, heads, 51_200, key_value_heads=8, gated=True,
            mlp_width=heads * 384, tied=False,
        ), batch) for layers, heads, batch in sizes
    ]  # fmt: skip


def plans_of(shape, gpus: int, run):
    """Yield the plans of all layouts of 1F1B that come out even."""
    for tp in (1, 2, 4, 8):
        for pp in (1, 2, 4, 8, 16):
            dp = gpus // (tp * pp)
            for microbatch in (1, 2, 4):
                if dp * tp * pp != gpus or run.batch % (dp * microbatch):
                    continue
                for zero in (0, 1, 2):
                    layout = planner.Layout(
                        tp=tp, pp=pp, dp=dp, zero=zero, microbatch=microbatch
                    )
                    yield planner.plan(shape, _cluster(layout), layout, run)


# fmt: off
HINTS = [
    Hint(lambda f: f["gib"], [
        "All is there, in the wrong unit: a GB is 10**9 bytes here, and 2**30 a "
        "GiB.",
        "Return plain bytes, divided by nothing."]),
    Hint(lambda f: f["no_reserve"], [
        "CUDA, NCCL and fragments take memory, too: where do you add `reserved`?",
        "It is added once, at the end, and divided by nothing."]),
    Hint(lambda f: f["no_logits"], [
        "The last stage keeps something for the logits. Can it be the fullest?",
        "It keeps one microbatch: `kept` of its layers, and `logits`, of each token."]),
    Hint(lambda f: f["one_microbatch"], [
        "A stage keeps the activations of more than one microbatch. In 1F1B, how "
        "many forwards has the first stage done before its first backward?",
        "Stage 0 of p stages waits for the backward of a microbatch that goes "
        "through all of them: p are in flight, or m if there are fewer."]),
    Hint(lambda f: f["all_microbatches"], [
        "That is GPipe's memory: 1F1B keeps no more microbatches than there are "
        "stages.",
        "min(p, m) on the first stage, 1 on the last."]),
    Hint(lambda f: f["no_ends"], [
        "The stages at the ends have more parameters than layers. Which?",
        "The first has the embedding, the last the output layer; if they are "
        "tied, both have the matrix. With one stage there is no copy."]),
    Hint(lambda f: f["both_ends"], [
        "One stage has the embedding and another the output layer. Does a GPU "
        "hold both?",
        "Only with pp = 1. Else take the larger of the two."]),
    Hint(lambda f: f["whole_states"] or f["whole_activations"], [
        "Something is not cut that is: ZeRO cuts the optimizer's state over dp "
        "ranks from stage 1 on, tensor parallelism cuts activations over tp.",
        "Write for each of the four terms by what it is divided: pp, tp, dp."]),
    Hint(lambda f: f["states_only"], [
        "Parameters, gradients and the optimizer's state are there. What does "
        "backward need besides?",
        "`kept` bytes of each token in each layer, divided by tp."]),
    Hint(lambda f: f["mean_layers"], [
        "Layers don't come in halves: 30 layers on 4 stages are 8, 8, 7 and 7 or "
        "the like. What has the fullest stage?",
        "Parameters of the fullest stage, ceil(layers / pp). The ends have one "
        "layer less where that does not come out even."]),
    Hint(lambda f: f["large"], [
        "Your number is too large. Which of the terms is not divided by enough?",
        "Compare with the plan in lesson 19, term by term: "
        "`plan(...).explain(...)`."]),
    Hint(lambda f: f["small"], [
        "Your number is too small. Gradients have 2 bytes and the optimizer's "
        "state 12; and what does the last stage keep for the logits?",
        "Compare with the plan in lesson 19, term by term: "
        "`plan(...).explain(...)`."]),
    Hint(lambda f: f["hopeless"], [
        "Where failures come faster than a restart, no interval helps. When is "
        "the goodput not above 0?",
        "Return None if 1 - save/interval - interval/(2 M) - recovery/M is 0 or "
        "less at its best; otherwise there is an answer."]),
    Hint(lambda f: f["shape"], [
        "Return three numbers: seconds between saves, days, spare nodes.",
        "A tuple in that order; None only where no answer helps."]),
    Hint(lambda f: f["one_gpu"], [
        "That interval fits one GPU. How often does one of all of them fail?",
        "The job's M is that of a GPU divided by their number."]),
    Hint(lambda f: f["interval"], [
        "Another interval keeps more work. Where do the costs of saving and of "
        "lost work have the same size?",
        "Young: the root of 2 * save * M, with all in seconds."]),
    Hint(lambda f: f["no_failures"], [
        "Those are the days without a failure. Divide them by the share that "
        "counts.",
        "That share is the goodput at your interval."]),
    Hint(lambda f: f["no_recovery"], [
        "A failure also costs its detection and the restart, whatever the "
        "interval.",
        "The goodput loses recovery / M besides."]),
    Hint(lambda f: f["few"], [
        "With so few spares the job waits for a repair in more than one of 100 "
        "moments.",
        "Nodes in repair are Poisson with mean repair / M: add up its terms until"
        " 0.99."]),
    Hint(lambda f: f["days"], [
        "Steps times seconds, over the goodput of *your* interval, in days of "
        "86,400 s.",
        "days = steps * step_s / goodput / 86400."]),
    Hint(lambda f: f["spares"], [
        "Fewer spares are enough in 99 of 100 moments. Is M that of the whole "
        "job, in the unit of the repair?",
        "Nodes in repair are Poisson with mean repair / M: add up its terms until"
        " 0.99."]),
    Hint(lambda f: f["nothing"], [
        "No layout of these fits. What do you return then, and what need you "
        "compute?",
        "None, before the first call of step_seconds."]),
    Hint(lambda f: f["too_large"], [
        "That layout does not fit in a GPU: compare its `memory` with `room`.",
        "Leave those out before you compute any step."]),
    Hint(lambda f: f["twice"], [
        "The step of a layout is computed more than once. Keep what it was.",
        "One loop over the indices in the order of their bounds calls each once."]),
    Hint(lambda f: f["many"] and f["all"], [
        "You compute the step of every layout that fits. Which of them can't be "
        "the best, whatever its communication costs?",
        "flops * batch * length / GPUs / rate * (1 + bubble) is a lower bound. Go"
        " from the lowest on, and stop where it reaches the best step so far."]),
    Hint(lambda f: f["many"], [
        "More steps are computed than needed. Is your lower bound as high as it "
        "may be?",
        "The pipeline's bubble, (p - 1) / m, is part of every step."]),
    Hint(lambda f: f["other"], [
        "Another layout that fits is faster. Do you stop before the bound reaches"
        " the best step so far?",
        "A bound is no step: only step_seconds(index) says how long one takes."]),
]
# fmt: on
