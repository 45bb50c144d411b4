"""The smaller parts of training, each beside torch's own or one process."""

import pytest
import torch
from torch import nn

from distlab.train.batch_norm import SyncBatchNorm
from distlab.train.horovod import DistributedOptimizer, broadcast_parameters
from distlab.train.memory import optimizer_bytes, storage_bytes
from distlab.train.optimizer_steps import MasterWeights, clip_gradients

FEATURES = 5
SIZES = [1, 2, 4]


def samples(count=11):
    draw = torch.Generator().manual_seed(3)
    return torch.randn(count, FEATURES, generator=draw, dtype=torch.float64) * 3 + 1


def normed(comm):
    norm = SyncBatchNorm(comm, FEATURES).double()
    mine = samples()[comm.rank :: comm.world_size].requires_grad_()
    output = norm(mine)
    (output**3).sum().backward()
    grads = [norm.weight.grad, norm.bias.grad, mine.grad]
    return output.detach(), grads, norm.running_mean, norm.running_var


@pytest.mark.parametrize("n", SIZES)
def test_batch_norm_over_all_ranks_is_that_of_the_whole_batch(worlds, n):
    norm, whole = nn.BatchNorm1d(FEATURES).double(), samples().requires_grad_()
    output = norm(whole)
    (output**3).sum().backward()
    results = worlds[n].run(normed).results
    for rank, (ours, (_, _, inputs), mean, variance) in enumerate(results):
        assert torch.allclose(ours, output.detach()[rank::n], atol=1e-12)
        assert torch.allclose(inputs, whole.grad[rank::n], atol=1e-12)
        assert torch.allclose(mean, norm.running_mean, atol=1e-12)
        assert torch.allclose(variance, norm.running_var, atol=1e-12)
    for place, expected in enumerate([norm.weight.grad, norm.bias.grad]):
        total = sum(grads[place] for _, grads, _, _ in results)
        assert torch.allclose(total, expected, atol=1e-12)


def horovods(comm):
    torch.manual_seed(comm.rank)
    model = nn.Linear(FEATURES, 2).double()
    broadcast_parameters(comm, model)
    optimizer = DistributedOptimizer(comm, torch.optim.SGD(model.parameters(), 0.1))
    for _ in range(3):
        optimizer.zero_grad()
        model(samples(12)[comm.rank :: comm.world_size]).pow(2).mean().backward()
        optimizer.step()
    return model.weight.detach()


def test_horovods_three_calls_train_one_model(worlds):
    torch.manual_seed(0)
    model = nn.Linear(FEATURES, 2).double()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(samples(12)).pow(2).mean().backward()
        optimizer.step()
    for weight in worlds[4].run(horovods).results:
        assert torch.allclose(weight, model.weight.detach(), atol=1e-13)


def layers():
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Linear(FEATURES, 40), nn.Tanh(), nn.Dropout(0.3), nn.Linear(40, FEATURES)
    ).double()


def test_bytes_count_storages_once_and_optimizer_state_by_the_formula():
    model = nn.Linear(100, 100, bias=False)
    assert storage_bytes([model.weight, model.weight[3:], None]) == 40_000
    optimizer = torch.optim.Adam(model.parameters())
    assert optimizer_bytes(optimizer) == 0
    model(torch.ones(1, 100)).sum().backward()
    optimizer.step()
    assert optimizer_bytes(optimizer) == 2 * 40_000


def test_clipping_is_torchs():
    ours, theirs = layers(), layers()
    for model in (ours, theirs):
        model.eval()(samples()).pow(2).sum().backward()
    norm = nn.utils.clip_grad_norm_(theirs.parameters(), 0.5)
    assert clip_gradients(ours.parameters(), 0.5) == pytest.approx(norm.item())
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.allclose(a.grad, b.grad, rtol=1e-5)


def test_master_weights_add_up_steps_that_bfloat16_would_lose():
    parameter = nn.Parameter(torch.ones(1, dtype=torch.bfloat16))
    masters = MasterWeights([parameter], lambda p: torch.optim.SGD(p, 1e-3))
    for _ in range(20):
        parameter.grad = torch.ones_like(parameter)
        masters.step()
    assert parameter.item() == pytest.approx(0.98, abs=0.004)
    alone = torch.ones(1, dtype=torch.bfloat16)
    for _ in range(20):
        alone -= 1e-3
    assert alone.item() == 1.0
