"""Ranks that train from other data or other values are told so, and nobody hangs."""

import pytest
import torch
from torch import nn

from distlab import Deadlock, InvalidArgument, RankRaised, World, run
from distlab.train.data import ShardedSampler, check_sharing
from distlab.train.data_parallel import NaiveDataParallel, OverlappedDataParallel
from distlab.train.fsdp import FullySharded
from distlab.train.optimizer_steps import MasterWeights
from distlab.train.replica_checks import check_same_values
from distlab.train.zero import ZeroOptimizer

N = 3
WAYS = ["naive", "overlapped", "zero 1", "zero 2", "fully sharded"]


@pytest.fixture(scope="module")
def world():
    with World(N) as opened:
        yield opened


def sgd(parameters):
    return torch.optim.SGD(parameters, 0.1, momentum=0.9)


class Trained:
    """A small model in one of the ways, and a step of it."""

    def __init__(self, comm, way, make=sgd):
        torch.manual_seed(0)
        self.plain = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 2))
        self.call, self.between, self.rank = self.plain, lambda: None, comm.rank
        if way.startswith("zero"):
            stage = int(way[-1])
            self.trained = self.optimizer = ZeroOptimizer(
                comm, self.plain, make, stage=stage
            )
        elif way == "fully sharded":
            self.trained = FullySharded(comm, self.plain, nn.Linear)
            self.optimizer = make(self.trained.shards)
        else:
            kinds = {"naive": NaiveDataParallel, "overlapped": OverlappedDataParallel}
            self.trained = self.call = kinds[way](comm, self.plain)
            self.between = self.trained.average_gradients
            self.optimizer = make(self.plain.parameters())

    def step(self):
        self.call(torch.ones(4, 6) * self.rank).pow(2).mean().backward()
        self.between()
        self.optimizer.step()
        if self.trained is not self.optimizer:
            self.optimizer.zero_grad()

    @property
    def weight(self):
        """What is left to be changed of the last layer's weight: "2.weight"."""
        if isinstance(self.trained, FullySharded):
            return self.trained.shards[-1]
        return self.plain[2].weight


def added(parameter):
    with torch.no_grad():
        parameter.add_(1)


def added_to_data(parameter):
    parameter.data.add_(1)


def one_number(parameter):
    parameter.data.view(-1)[1].mul_(1 + 1e-6)


def replaced(parameter):
    parameter.data = parameter.data.clone()


CHANGES = [added, added_to_data, one_number, replaced]


def says(comm, way):
    """Return what is said of each change, and of one that was accepted, per rank."""
    said = []
    for change in CHANGES:
        ours = Trained(comm, way)
        for _ in range(2):
            ours.step()
        change(ours.weight)
        try:
            ours.step()
        except InvalidArgument as error:
            said.append(str(error))
        ours.trained.accept_changes()
        ours.step()
        ours.step()
    return said


@pytest.mark.parametrize("way", WAYS)
def test_a_parameter_changed_outside_the_optimizer_is_named_until_accepted(world, way):
    for rank, said in enumerate(world.run(says, way).results):
        assert len(said) == len(CHANGES)
        for words in said:
            assert f"on rank {rank}, 2.weight is not as the last step left" in words
            assert "accept_changes()" in words


def changed_on_rank_1(comm, way):
    ours = Trained(comm, way)
    for _ in range(2):
        ours.step()
    if comm.rank == 1:
        added_to_data(ours.weight)
    for _ in range(2):
        ours.step()


@pytest.mark.parametrize("way", ["overlapped", "zero 2", "fully sharded"])
def test_a_change_on_one_rank_ends_the_run_and_names_it(way):
    with pytest.raises(RankRaised, match=r"on rank 1, 2\.weight is not") as failure:
        run(changed_on_rank_1, N, args=(way,))
    assert failure.value.rank == 1


def steps_by_hand_and_by_masters(comm):
    by_hand = Trained(comm, "naive", lambda parameters: sgd([torch.zeros(1)]))
    for _ in range(3):
        by_hand.step()
        with torch.no_grad():
            for parameter in by_hand.plain.parameters():
                parameter -= 0.1 * parameter.grad
                parameter.grad = None
    by_masters = Trained(
        comm, "naive", lambda parameters: MasterWeights(parameters, sgd)
    )
    for _ in range(3):
        by_masters.step()
    added_to_data(by_masters.weight)
    try:
        by_masters.step()
    except InvalidArgument:
        return "noticed"


def test_steps_by_hand_are_no_mistake_and_masters_are_watched_too(world):
    assert world.run(steps_by_hand_and_by_masters).results == ["noticed"] * N


def described(comm, call, *args):
    """Return what a call that all ranks make together says on this one."""
    try:
        call(comm, *args)
    except InvalidArgument as error:
        return str(error)


def other_values(comm):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    before = described(comm, check_same_values, model)
    if comm.rank == 2:
        with torch.no_grad():
            model[1].weight[1, 1] += 1e-7
    return before, described(comm, check_same_values, model)


def test_values_that_differ_are_named_with_rank_and_parameter(world):
    for before, after in world.run(other_values).results:
        assert before is None
        assert after.startswith("1.weight has other values on rank 2 than on rank 0")


def shares(comm, count):
    """Return what is said of shares that are right, and of four that are wrong."""
    rank, n = comm.rank, comm.world_size

    def sampled(**options):
        sampler = ShardedSampler(count, rank, n, **options)
        sampler.set_epoch(1)
        return list(sampler)

    cut = sampled()[: -1 if rank == 2 else None]
    return [
        described(comm, check_sharing, indices)
        for indices in (sampled(), range(count), sampled(seed=rank), cut)
    ]


@pytest.mark.parametrize("count", [30, 31])
def test_ranks_that_share_samples_or_have_fewer_are_told(world, count):
    each = -(-count // N)
    for right, everything, seeds, fewer in world.run(shares, count).results:
        assert right is None
        assert everything.startswith(
            f"rank 0 and rank 1 both have sample 0, and {count - 1} more: there is no "
            "ShardedSampler"
        )
        assert "both have sample" in seeds
        assert fewer.startswith(f"rank 2 has {each - 1} samples and rank 0 has {each}")


def one_batch_less(comm, way):
    ours = Trained(comm, way)
    for _ in range(3 - (comm.rank == 1)):
        ours.step()


@pytest.mark.parametrize("way", WAYS)
def test_a_rank_with_one_batch_less_is_named_and_nobody_hangs(way):
    with pytest.raises(Deadlock, match="rank 1 has returned"):
        run(one_batch_less, N, args=(way,), timeout_s=30)
