"""The planner: its numbers against published ones, and against schedules as data."""

import dataclasses
import math
import random
from decimal import Decimal

import numpy as np
import pytest

from distlab import LINKS, InvalidArgument, cost, run, show
from distlab.collectives import ring_all_reduce
from distlab.cost import TransformerShape
from distlab.plan import (
    FORMULAS,
    PRECISIONS,
    GpuCluster,
    Layout,
    TrainingRun,
    pareto,
    plan,
    published_models,
    published_rows,
    search,
)
from distlab.plan.topology import rail_fabric, ring_all_reduce_s, ring_sharing
from distlab.simulated import FatTree, Placed
from distlab.train import pipeline
from distlab.train.pipeline import Times, timed

LLAMA = published_models()["Llama 3 405B"].shape
SMALL = TransformerShape(16, 2048, 16, 32_000, dropout=False)
RUN = TrainingRun(batch=2048, length=8192, tokens=15.6e12)


def rounding(number):
    """Return a unit of the last digit of a published number, as a share of it."""
    digits = Decimal(f"{number:.6g}").normalize()
    return float(10 ** Decimal(digits.as_tuple().exponent) / digits)


@pytest.mark.parametrize(
    "row", list(published_rows()), ids=lambda r: f"{r.name} {r.quantity}"
)
def test_published_numbers_are_met(row, record_property):
    record_property(
        "error", f"{row.error:+.2%}; left out: {row.leaves_out or 'nothing'}"
    )
    print(f"{row.published:.5g} published, {row.computed:.5g} here, {row.error:+.2%}")
    most = max(0.01, rounding(row.published))
    if row.quantity in ("MFU", "HFU"):
        most = 0.005
    if row.kind == "predicted":
        most = 0.16 if row.quantity != "MFU" else 0.08  # what it leaves out is long
    assert abs(row.error) <= most, row


@pytest.mark.parametrize("stages", [2, 4, 8])
@pytest.mark.parametrize(
    ("name", "chunks", "schedule"),
    [
        ("GPipe", 1, pipeline.gpipe),
        ("1F1B", 1, pipeline.one_f_one_b),
        ("interleaved", 2, lambda p, m: pipeline.interleaved(p, m, chunks=2)),
        ("interleaved", 4, lambda p, m: pipeline.interleaved(p, m, chunks=4)),
        ("ZB-H1", 1, pipeline.zero_bubble_h1),
        ("ZB-H2", 1, pipeline.zero_bubble_h2),
        ("ZB-V", 1, pipeline.zero_bubble_v),
    ],
)
def test_bubbles_and_microbatches_in_flight_are_those_of_the_schedule_as_data(
    stages, name, chunks, schedule
):
    m = 4 * stages
    cut = schedule(stages, m)
    played = timed(cut, Times())
    idle = cost.pipeline_bubble(name, stages, m, chunks=chunks)
    assert played.bubble == pytest.approx(idle / (1 + idle))
    freed_by = "W" if cut.splits_backward else "B"
    for stage in range(stages):
        kept = [0]
        for place, work, *_ in played.rows:
            if place == stage and work.kind in ("F", freed_by):
                kept.append(kept[-1] + (1 if work.kind == "F" else -1))
        expected = cost.microbatches_in_flight(
            name, stages, m, chunks=chunks, stage=stage
        )
        assert max(kept) / cut.chunks == expected


def test_dual_pipe_has_the_bubble_and_memory_of_deepseeks_table():
    """DeepSeek-AI (2024), table 2: (p/2 - 1)(F&B + B - 3W), twice the parameters."""
    forward, backward, weights = 0.4, 0.4, 0.2  # of inputs and of weights
    whole = backward + weights
    published = (8 / 2 - 1) * (forward + whole + whole - 3 * weights) / 16
    assert cost.pipeline_bubble("DualPipe", 8, 16, weights=0.2) == pytest.approx(
        published
    )
    assert cost.microbatches_in_flight("DualPipe", 8, 16) == 9
    sizes = {"tp": 8, "pp": 16, "dp": 128, "zero": 0}
    one, two = (
        plan(LLAMA, GpuCluster("H100 80GB", 16_384), Layout(schedule=s, **sizes), RUN)
        for s in ("1F1B", "DualPipe")
    )
    assert two.parameter_bytes == 2 * one.parameter_bytes
    assert two.state_bytes == one.state_bytes
    with pytest.raises(InvalidArgument, match="DualPipe needs an even pp"):
        layout = Layout(tp=8, pp=1, dp=2048, schedule="DualPipe")
        plan(LLAMA, GpuCluster("H100 80GB", 16_384), layout, RUN)


def test_every_number_is_computed_from_the_formula_that_it_shows():
    found = plan(
        LLAMA, GpuCluster("H100 80GB", 16_384), Layout(tp=8, pp=16, dp=128), RUN
    )
    assert found.m == 16
    assert found.mfu == pytest.approx(
        cost.mfu(LLAMA.training_flops(8192), found.tokens_per_s, 16_384, 989.4e12)
    )
    states = cost.zero_memory(found.dense_parameters, 128, 1)
    parts = found.parameter_bytes + found.gradient_bytes + found.state_bytes
    assert parts == pytest.approx(states.total_bytes)
    for zero in (0, 1):
        layout = Layout(tp=8, pp=16, dp=128, zero=zero)
        one = plan(LLAMA, found.cluster, layout, RUN)
        sent = cost.zero_traffic_bytes(2 * one.dense_parameters, 128, zero)
        assert one.dp_bytes == pytest.approx(sent)
    assert "m * microbatch_s + bubble_s" in found.explain("step_s")
    for name in FORMULAS:
        assert found.explain(name).startswith(name)
        assert math.isfinite(getattr(found, name))
    with pytest.raises(InvalidArgument, match="and no 'speed'"):
        found.explain("speed")


def test_activations_are_those_of_a_stage_of_1f1b():
    shape = published_models()["Megatron 175B"].shape
    cluster = GpuCluster("A100 80GB", 64, reserved_bytes=0)
    for recompute in ("none", "selective"):
        layout = Layout(tp=8, pp=8, zero=0, recompute=recompute)
        run = TrainingRun(64, 2048, 1e9, fused=False)
        found = plan(shape, cluster, layout, run)
        how = {"stages": 8, "tp": 8, "sequence": True, "recompute": recompute}
        expected = cost.stage_activation_bytes(shape, 2048, 1, **how)
        assert found.activation_bytes == pytest.approx(expected)


def test_a_search_finds_what_planning_every_layout_finds():
    cluster = GpuCluster("H100 80GB", 8, per_node=4)
    run = TrainingRun(batch=32, length=2048, tokens=1e9)
    found = search(SMALL, cluster, run, schedule="1F1B", cp=1, microbatch=1)
    best = math.inf
    for tp in (1, 2, 4, 8):
        for pp in [n for n in (1, 2, 4, 8) if tp * n <= 8]:
            for zero in (0, 1, 2, 3):
                for recompute in ("none", "full"):
                    dp = 8 // (tp * pp)
                    how = {"zero": zero, "recompute": recompute}
                    layout = Layout(tp=tp, pp=pp, dp=dp, **how)
                    one = plan(SMALL, cluster, layout, run)
                    best = min(best, one.step_s if one.fits else math.inf)
    assert found.best.step_s == pytest.approx(best)
    assert found.runner_up.step_s >= best
    lost = sum(found.lost_by().values())
    assert lost == pytest.approx(found.runner_up.step_s - best)


def test_a_model_that_fits_nowhere_names_the_nearest_miss():
    found = search(LLAMA, GpuCluster("A100 40GB", 64), RUN)
    assert found.rejected["memory"] > 100
    with pytest.raises(
        InvalidArgument, match=r"no layout fits. The nearest, .* too much"
    ):
        found.best  # noqa: B018
    over = found.nearest_miss.memory_bytes - 40e9
    assert over > 0
    assert "too much" in repr(found)


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ({"tp": 8, "pp": 16, "dp": 64}, r"= 8192, and the cluster has 16384 GPUs"),
        ({"tp": 256, "dp": 64}, "heads = 128 is not a multiple of tp = 256"),
        ({"tp": 1, "dp": 16_384}, "batch = 2048 is not a multiple of dp"),
        ({"tp": 8, "pp": 256, "dp": 8}, "is more than layers = 126"),
        ({"tp": 8, "ep": 2, "dp": 2048}, "experts = 1 is not a multiple of ep = 2"),
        (
            {"tp": 8, "dp": 2048, "chunks": 2},
            "schedule interleaved has chunks=2 or more",
        ),
        ({"tp": 0}, "tp is a whole number from 1 up, and got 0"),
        ({"schedule": "fast"}, "schedule is one of 'GPipe', .* and got 'fast'"),
        ({"zero": 4}, "zero is one of 0, 1, 2, 3, and got 4"),
        ({"overlap": "dp"}, "overlap is a tuple of some of"),
    ],
)
def test_a_layout_that_does_not_multiply_or_divide_is_refused(sizes, words):
    with pytest.raises(InvalidArgument, match=words):
        plan(LLAMA, GpuCluster("H100 80GB", 16_384), Layout(**sizes), RUN)


def test_a_gibibyte_is_not_a_gigabyte_and_18_bytes_are_not_16():
    layout, cluster = (
        Layout(tp=8, pp=16, dp=128, zero=0),
        GpuCluster("H100 80GB", 16_384),
    )
    small = plan(LLAMA, cluster, layout, RUN)
    more = plan(
        LLAMA,
        cluster,
        layout,
        dataclasses.replace(RUN, precision=PRECISIONS["18 bytes"]),
    )
    difference = more.memory_bytes - small.memory_bytes
    assert difference == pytest.approx(2 * small.dense_parameters)


def test_a_pareto_front_has_no_plan_that_another_beats_in_all():
    cluster = GpuCluster("H100 80GB", 8, per_node=4)
    run = TrainingRun(batch=32, length=2048, tokens=1e9)
    plans = search(SMALL, cluster, run).ranking
    ranked = [one.step_s for one in plans]
    assert ranked == sorted(ranked)  # as planned one by one, and as the walk found them
    front = pareto(plans, "step_s", "memory_bytes")
    for one in plans:
        beaten = any(
            other.step_s <= one.step_s and other.memory_bytes <= one.memory_bytes
            for other in front
        )
        assert beaten
    assert [one.step_s for one in front] == sorted(one.step_s for one in front)


def reduced(comm):
    ring_all_reduce(comm, np.zeros(1_000_000, dtype=np.float32))


def test_a_ring_is_as_slow_on_the_simulator_as_the_planner_says():
    """In the order of the leaf switches, oversubscription costs a ring nothing."""
    in_order = range(16)
    strided = [(i % 4) * 4 + i // 4 for i in range(16)]
    for oversubscription in (1, 2, 4):
        tree = FatTree(4, LINKS["InfiniBand NDR"], oversubscription)
        for places, sharing in ((in_order, 1), (strided, oversubscription)):
            fabric = Placed(tree, tuple(places))
            assert ring_sharing(fabric, 16) == sharing
            predicted = ring_all_reduce_s(fabric, 16, 4_000_000)
            assert run(reduced, 16, fabric=fabric).elapsed_s == pytest.approx(predicted)
    shuffled = random.Random(1).sample(in_order, 16)
    fabric = Placed(FatTree(4, LINKS["InfiniBand NDR"], 4), tuple(shuffled))
    bound = ring_all_reduce_s(fabric, 16, 4_000_000)
    assert run(reduced, 16, fabric=fabric).elapsed_s <= bound * (1 + 1e-9)


def test_scattered_nodes_slow_a_ring_on_a_rail_as_much_as_the_plan_says():
    cluster = GpuCluster("H100 80GB", 128, oversubscription=4, nodes_per_leaf=4)
    rails = rail_fabric(cluster)
    at = {}
    for scattered in (False, True):
        nodes = [(n % 4) * 4 + n // 4 if scattered else n for n in range(16)]
        fabric = Placed(rails, tuple(node * 8 for node in nodes))
        large = ring_all_reduce_s(fabric, 16, 4_000_000)
        assert run(reduced, 16, fabric=fabric).elapsed_s == pytest.approx(large)
        layout = Layout(tp=8, dp=16)
        placed = dataclasses.replace(cluster, scattered=scattered)
        found = plan(SMALL, placed, layout, TrainingRun(32, 2048, 1e9))
        latency_s = 15 * 2 * cluster.outside.latency_s
        at[scattered] = found.dp_s - latency_s, large - latency_s
    (plain, ring), (slow, slow_ring) = at[False], at[True]
    assert slow / plain == pytest.approx(4) == slow_ring / ring


def test_a_cell_shows_a_plan_whose_numbers_open_their_formulas():
    found = plan(
        LLAMA, GpuCluster("H100 80GB", 16_384), Layout(tp=8, pp=16, dp=128), RUN
    )
    page = found._repr_html_()
    assert page.count("<pre>") == len(FORMULAS)
    assert "step_s = m * microbatch_s" not in repr(found)
    assert "too much" in repr(found)
    looked = search(LLAMA, found.cluster, RUN, tp=8, cp=1)
    assert looked.best.layout.tp == 8
    assert "<table>" in looked._repr_html_()
    with pytest.raises(InvalidArgument, match="by is one of"):
        search(LLAMA, found.cluster, RUN, by="speed")


def test_a_picture_of_a_front_names_those_that_no_other_beats():
    options = {"a": (1, 10), "b": (2, 5), "c": (3, 6), "d": (4, 1)}
    said = show.pareto(options, x_label="cost, $", y_label="days", title="Plans").alt
    assert (
        "On the front: a, 1 and 10. On the front: b, 2 and 5. On the front: d" in said
    )
    assert "front: c" not in said
    for wrong, words in (
        ({}, "a dict of 1"),
        ({"a": 3}, r"\['a'\] is"),
        ({"a": (0, 1)}, "above 0"),
    ):
        with pytest.raises(InvalidArgument, match=words):
            show.pareto(wrong, x_label="", y_label="")


def test_a_ring_through_all_nics_of_a_node_sends_the_rest_on_nvlink():
    """A ring of n ranks, `near` on a node: of n hops n / near leave it."""
    model, near, n = published_models()["Llama 3 8B"].shape, 8, 64
    run = TrainingRun(batch=n, length=8192, tokens=1e12)
    one = plan(model, GpuCluster("H100 80GB", n), Layout(dp=n, zero=1), run)
    hops = [(rank // near, (rank + 1) % n // near) for rank in range(n)]
    inside = sum(here == there for here, there in hops) / n
    assert one.nvlink_bytes == pytest.approx(one.dp_bytes * inside)
    assert one.nic_bytes == pytest.approx(one.dp_bytes * (1 - inside))
    assert one.tokens_in(2) == pytest.approx(2 * one.run.tokens / one.days)
    assert "links at 85% of their rates" in repr(one)


def test_clusters_that_cannot_be_are_refused():
    for wrong, words in (
        ({"gpu": "H900", "gpus": 8}, "GPUS has V100 32GB, .* no 'H900'"),
        ({"gpu": "H100 80GB", "gpus": 0}, "gpus is a whole number"),
        ({"gpu": "H100 80GB", "gpus": 12}, "12 GPUs do not fill nodes of 8"),
        ({"gpu": "H100 80GB", "gpus": 8, "efficiency": 1.2}, "efficiency is above 0"),
        ({"gpu": "H100 80GB", "gpus": 8, "link_efficiency": 0}, "link_efficiency is a"),
        ({"gpu": "H100 80GB", "gpus": 8, "link_efficiency": None}, "got None"),
    ):
        with pytest.raises(InvalidArgument, match=words):
            GpuCluster(**wrong)
