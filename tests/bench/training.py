"""A training step from scratch beside PyTorch's own, on the small GPT.

    python tests/bench/training.py [ranks] [times]

NCCL where there is a GPU, which ranks share if there are too few; else gloo.
All take turns on the same ranks. A time is that of the slowest rank, from before
forward to after the optimizer's step. "torch / this" is the median over the turns of
the time of PyTorch's own of the same kind, divided by this one's: above 1 is faster.
"""

import statistics
import sys
import time

import torch
from all_reduce import backend
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from distlab import World
from distlab.train.data_parallel import (
    BucketedDataParallel,
    NaiveDataParallel,
    OverlappedDataParallel,
)
from distlab.train.fsdp import FullySharded
from distlab.train.models import GPT, Block

PEERS = {"DDP": "DDP", "naive": "DDP", "bucketed": "DDP", "overlapped": "DDP"}
PEERS |= {"FSDP2": "FSDP2", "fully sharded": "FSDP2"}


def stepper(comm, name):
    """Return a function that takes one step on a text."""
    torch.manual_seed(0)
    gpt = GPT(width=128, layers=4, heads=4, length=64).to(comm.device)
    after, parameters = lambda: None, gpt.parameters()
    call = gpt.loss
    if name == "DDP":
        wrapped = DistributedDataParallel(_Loss(gpt))
        call = wrapped
    elif name == "FSDP2":
        mesh = init_device_mesh(comm.device.type, (comm.world_size,))
        for block in gpt.blocks:
            fully_shard(block, mesh=mesh)
        fully_shard(gpt, mesh=mesh)
        parameters = gpt.parameters()
    elif name == "fully sharded":
        sharded = FullySharded(comm, gpt, Block)
        parameters = sharded.shards
    else:
        kinds = {"naive": NaiveDataParallel, "bucketed": BucketedDataParallel}
        kinds["overlapped"] = OverlappedDataParallel
        after = kinds[name](comm, gpt).average_gradients
    optimizer = torch.optim.SGD(parameters, 0.01)

    def step(text):
        optimizer.zero_grad()
        call(text).backward()
        after()
        optimizer.step()

    return step


class _Loss(torch.nn.Module):
    def __init__(self, gpt):
        super().__init__()
        self.gpt = gpt

    def forward(self, text):
        return self.gpt.loss(text)


def turns(comm, times):
    """Return, for each way and turn, the seconds of this rank."""
    steps = {name: stepper(comm, name) for name in PEERS}
    text = torch.randint(0, 256, (4, 65), device=comm.device)
    device = torch.get_device_module(comm.device)
    taken = {name: [] for name in PEERS}
    for _ in range(times + 2):
        for name, step in steps.items():
            device.synchronize()
            comm.barrier()
            began = time.perf_counter()
            step(text)
            device.synchronize()
            taken[name].append(time.perf_counter() - began)
    return {name: each[2:] for name, each in taken.items()}


def main():
    """Print the table."""
    ranks, times = ([*map(int, sys.argv[1:]), 4, 15][:2]) if sys.argv[1:] else (4, 15)
    how, device = backend()
    with World(ranks, **how) as world:
        world.timeout_s = 600
        results = world.run(turns, times).results
    slowest = {
        name: [max(each) for each in zip(*(r[name] for r in results), strict=True)]
        for name in PEERS
    }
    numbers = sum(p.numel() for p in GPT(width=128, layers=4, length=64).parameters())
    print(f"{ranks} ranks of {device}, {numbers:,} parameters, {times} turns")
    print(f"{'':16}{'median':>10}{'best':>10}{'torch / this':>14}")
    for name, peer in PEERS.items():
        pairs = zip(slowest[peer], slowest[name], strict=True)
        ratio = statistics.median(a / b for a, b in pairs)
        median, best = statistics.median(slowest[name]), min(slowest[name])
        print(f"{name:16}{median * 1e3:7.1f} ms{best * 1e3:7.1f} ms{ratio:14.2f}")


if __name__ == "__main__":
    main()
