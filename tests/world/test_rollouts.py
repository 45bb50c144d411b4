"""Reinforcement learning with rollout workers: ages, bounds, and who is waited for."""

import math
import random

import pytest
import torch

from distlab import Kill, RankDied, RankRaised, run
from distlab.errors import InvalidArgument
from distlab.links import Link
from distlab.simulated import Uniform
from distlab.train.asynchronous import PairTask, RolloutPlan, Rollouts, run_rollouts

SIZES = [4]
INSTANT = Uniform(Link(latency_s=0.0, bytes_per_s=math.inf))


def plan(batch=4, updates=60, **limits):
    return RolloutPlan(torch.zeros(3), 2, batch, updates, **limits)


def trained(comm, plan, train_s, rollout_s, size=2):
    """Return each batch's ages and rollouts, from the trainer; others: a count."""
    batches, draw = [], random.Random(comm.rank)

    def generate(weights):
        with comm.work("rollout", seconds=rollout_s(comm.rank, draw)):
            return torch.cat([weights[:1], torch.tensor([1.0 * comm.rank])])[:size]

    def train(weights, rollouts, ages):
        with comm.work("train", seconds=train_s):
            batches.append((ages.tolist(), rollouts.tolist()))
            return weights + 1

    result = run_rollouts(comm, plan, generate, train)
    return batches if comm.rank == 1 else result


def exponential(rank, draw):
    return draw.expovariate(1.0)


def on_clock(workers, plan, train_s=0.0, rollout_s=exponential):
    return run(trained, workers + 2, args=(plan, train_s, rollout_s), fabric=INSTANT)


def ages_of(report):
    return [ages for ages, _ in report.results[1]]


def mean(ages):
    return sum(map(sum, ages)) / sum(map(len, ages))


def test_ages_are_those_of_the_weights_that_the_worker_had(worlds):
    """The weights count the updates, and a rollout carries those it was made with."""
    report = worlds[4].run(trained, plan(2, 8), 0.0, lambda rank, draw: 0.001)
    assert len(report.results[1]) == 8
    for update, (ages, rollouts) in enumerate(report.results[1]):
        assert ages == [update - made_with for made_with, _ in rollouts]


@pytest.mark.parametrize("batch", [4, 6])
def test_a_bound_of_0_is_synchronous(batch):
    report = on_clock(6, plan(batch, bound=0), train_s=0.5)
    assert mean(ages_of(report)) == 0
    assert sum(report.results[2:]) == 60 * batch


def marks_first(event):
    return event.end, event.kind != "mark"


@pytest.mark.parametrize("bound", [0, 1, 3])
def test_no_more_rollouts_start_than_the_bound_has_room_for(bound):
    report = on_clock(9, plan(bound=bound), train_s=1.0)
    version, started = 0, 0
    for event in sorted(report.trace.of(0), key=marks_first):
        version += event.kind == "mark"
        started += event.kind == "send" and event.peer > 1
        if version < 60:
            assert started <= 4 * (version + bound + 1)


def slow_one(rank, draw):
    return 30.0 if rank == 2 else draw.uniform(0.9, 1.1)


def test_a_slow_rollout_is_older_than_the_bound_unless_it_is_dropped():
    kept = on_clock(6, plan(bound=1), rollout_s=slow_one)
    dropped = on_clock(6, plan(bound=1, drop_late=True), rollout_s=slow_one)
    assert max(map(max, ages_of(kept))) > 10 and kept.results[0] == 0
    assert max(map(max, ages_of(dropped))) <= 1 and dropped.results[0] > 0
    workers = {worker for _, rows in dropped.results[1] for _, worker in rows}
    assert workers == {3, 4, 5, 6, 7}
    mixed = on_clock(6, plan(bound=1, drop_late=True), train_s=1.0)
    assert max(map(max, ages_of(mixed))) == 1


def test_the_mean_age_is_workers_over_batch_and_the_share_of_time_that_trains():
    """16 workers at 1 rollout/s fill a batch of 8 in 0.5 s, and 0.25 s of it trains."""
    report = on_clock(16, plan(8, 400), train_s=0.25)
    assert mean(ages_of(report)[20:]) == pytest.approx(16 / 8 + 0.25 / 0.5, rel=0.05)


def test_a_slow_trainer_makes_rollouts_ever_older_without_a_bound():
    free = ages_of(on_clock(8, plan(updates=200), train_s=1.0))
    assert mean(free[150:]) > 2 * mean(free[50:100]) > 10
    bounded = on_clock(8, plan(updates=200, bound=4), train_s=1.0)
    assert mean(ages_of(bounded)) < 5
    assert bounded.elapsed_s == pytest.approx(200, rel=0.03)  # the trainer never waits


def test_a_rank_that_dies_is_named():
    for victim in (1, 3):
        with pytest.raises(RankDied, match=f"rank {victim} "):
            args = (plan(2, 50), 0.0, lambda rank, draw: 0.001)
            run(trained, 4, args=args, faults=Kill(victim, 8))


@pytest.mark.parametrize(
    "wrong, words",
    [({"batch": 0}, "batch"), ({"updates": 1.5}, "updates"), ({"bound": -1}, "bound")],
)
def test_a_plan_that_cannot_be_is_refused(wrong, words):
    with pytest.raises(InvalidArgument, match=words):
        plan(**wrong)
    with pytest.raises(InvalidArgument, match="flat"):
        RolloutPlan(torch.zeros(2, 2), 1, 1, 1)


def test_a_rollout_of_another_size_and_a_world_of_two_are_refused():
    with pytest.raises(RankRaised, match=r"rank 2 generated .*\[1\]"):
        run(trained, 3, args=(plan(), 0.0, exponential, 1), fabric=INSTANT)
    with pytest.raises(RankRaised, match="3 ranks at least"):
        on_clock(0, plan())


def test_rows_of_rollouts_come_back_and_rewards_are_what_the_policy_expects():
    task, draw = PairTask(3), torch.Generator().manual_seed(0)
    rollouts = task.generate(5 * task.start, 4000, draw)
    back = Rollouts.of_rows(rollouts.rows())
    assert all(map(torch.equal, rollouts, back))
    expected = float(task.expected_return(5 * task.start))
    assert float(rollouts.rewards.mean()) == pytest.approx(expected, abs=0.02)
    again = task.log_probs(5 * task.start, back.prompts)
    assert torch.allclose(again.exp().sum(-1), torch.ones(4000, 4), atol=1e-5)
    of_tokens = again.gather(-1, back.tokens[..., None])[..., 0]
    assert torch.allclose(of_tokens, back.log_probs)


def test_tasks_side_by_side_are_those_of_their_seeds():
    """A stack of weights against one after the other, of the same prompts."""
    stack, draw = PairTask([3, 8]), torch.Generator().manual_seed(0)
    rollouts = Rollouts.of_rows(stack.generate(5 * stack.start, 500, draw).rows())
    returns = stack.expected_return(5 * stack.start)
    for place, task in enumerate((PairTask(3), PairTask(8))):
        mine = Rollouts(*(part[place] for part in rollouts))
        alone = task.log_probs(5 * task.start, mine.prompts)
        alone = alone.gather(-1, mine.tokens[..., None])[..., 0]
        assert torch.allclose(alone, mine.log_probs, atol=1e-5)
        right = task.table[mine.prompts[..., 0], mine.prompts[..., 1]] == mine.tokens
        assert torch.equal(right.float().mean(-1), mine.rewards)
        assert torch.isclose(task.expected_return(5 * task.start), returns[place])
