"""Lesson 15: what its functions compute, and what its text says of them."""

import json
import math
from pathlib import Path

import pytest
import torch

from distlab import LINKS, MB, cost
from distlab.train.asynchronous import PairTask, RolloutPlan, Rollouts, may_start

LESSON = Path(__file__).parents[2] / "lessons" / "15_async_training.ipynb"


@pytest.fixture(scope="module")
def lesson():
    """Return the names that some cells of the lesson define."""
    cells = json.loads(LESSON.read_text())["cells"]
    names = {"torch": torch, "PairTask": PairTask}
    for cell in cells:
        if cell["id"].startswith("reference-") or cell["id"] == "policy-step":
            exec("".join(cell["source"]), names)
    for cell in cells:
        if cell["id"] == "write-loss":
            exec("".join(cell["source"]).split("...\n", 1)[1], names)
    return names


def test_a_worker_goes_on_at_the_bound_and_waits_above_it(lesson):
    clocks = {1: 3, 2: 5, 3: 6, 4: 5}
    assert lesson["reference_within_bound"](clocks, [4, 3, 2], 2) == [4, 2]
    assert lesson["reference_within_bound"](clocks, [3, 4], math.inf) == [3, 4]
    assert lesson["reference_within_bound"]({}, [], 0) == []


@pytest.mark.parametrize("servers", [1, 4, 16])
def test_an_exchange_takes_what_the_cost_says(lesson, servers):
    link = LINKS["Ethernet 25G TCP"]
    seconds = lesson["reference_exchange_seconds"](16, servers, MB, link)
    price = cost.parameter_server(16 + servers, MB, servers=servers)
    assert seconds == pytest.approx(
        price.seconds(link.latency_s, link.bytes_per_s), rel=1e-3
    )


def test_the_loss_is_weighted_by_a_ratio_of_1_at_most_through_which_nothing_flows(
    lesson,
):
    then = torch.log(torch.tensor([[0.5, 0.2]]))
    now = torch.log(torch.tensor([[0.1, 0.4]])).requires_grad_()
    lesson["reference_loss"](now, then, torch.tensor([[3.0]])).backward()
    assert torch.allclose(now.grad, torch.tensor([[-0.2, -1.0]]) * 3 / 2)


def test_ppos_clip_stops_a_token_that_has_moved_far_enough(lesson):
    then = torch.zeros(1, 2)
    now = torch.log(torch.tensor([[1.5, 0.5]])).requires_grad_()
    lesson["ppo_loss"](now, then, torch.tensor([[1.0]])).backward()
    assert now.grad[0, 0] == 0 and now.grad[0, 1] < 0


@pytest.mark.parametrize("version, accepted, running, bound, may", [
    (0, 0, 0, 0, 32), (0, 20, 12, 0, 0), (3, 100, 30, 1, 30), (1, 60, 40, 0, -36)
])  # fmt: skip
def test_rollouts_may_start_for_the_batches_within_the_bound(
    version, accepted, running, bound, may
):
    plan = RolloutPlan(torch.zeros(1), 1, batch=32, updates=1, bound=bound)
    assert may_start(version, accepted, running, plan) == may


def test_old_rollouts_harm_without_the_ratio_and_less_with_it(lesson):
    """At the ages of a trainer that is a sixth slower than its workers."""
    ages = [[update // 6] * 32 for update in range(250)]
    kinds = {"fresh": ([[0] * 32] * 250, "plain_loss")}
    kinds |= {name: (ages, name) for name in ("plain_loss", "reference_loss")}
    ends = {
        kind: float(lesson["replayed"](ages, lesson[loss], [1.0], 4)[-1].mean())
        for kind, (ages, loss) in kinds.items()
    }
    assert ends["fresh"] > 0.75 and ends["plain_loss"] < ends["reference_loss"] - 0.1


def test_a_step_follows_the_gradient_of_log_probabilities(lesson):
    """By finite differences of the policy's expected reward, over many rollouts."""
    task, draw = PairTask(0), torch.Generator().manual_seed(0)
    rows = task.generate(task.start, 40_000, draw).rows()
    assert Rollouts.of_rows(rows).rewards.std() > 0
    better = lesson["improved"](task, task.start, rows, lesson["plain_loss"], rate=0.1)
    along = (better - task.start) / (better - task.start).norm()
    slopes = []
    for direction in (
        along,
        torch.randn(len(along), generator=draw) / len(along) ** 0.5,
    ):
        ends = [task.expected_return(task.start + h * direction) for h in (-0.05, 0.05)]
        slopes.append((ends[1] - ends[0]) / 0.1)
    assert slopes[0] > 0 and slopes[0] > 5 * abs(slopes[1])


def test_3_percent_of_rollouts_last_over_4_seconds_and_their_mean_is_1():
    above = 0.5 * math.erfc((math.log(4) + 0.5) / math.sqrt(2))
    assert above == pytest.approx(0.03, abs=0.001)
    assert math.exp(-0.5 + 1 / 2) == 1
