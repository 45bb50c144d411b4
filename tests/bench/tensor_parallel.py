"""Our tensor-parallel MLP beside torch's parallelize_module, a step in ms.

    python tests/bench/tensor_parallel.py

Both split the same network over the same processes, step by step in turn.
"""

import time
from copy import deepcopy
from statistics import median

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

from distlab import run
from distlab.train.models import Block
from distlab.train.tensor_parallel import ParallelMLP

RANKS, STEPS = 2, 30


def both(comm, width, tokens):
    torch.manual_seed(0)
    network = Block(width, 4).network
    ours = ParallelMLP(comm, network)
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    mesh = init_device_mesh("cpu", (comm.world_size,))
    theirs = parallelize_module(deepcopy(network), mesh, plan)
    x = torch.rand(tokens, width)
    taken = {"ours": [], "torch": []}
    for _ in range(STEPS):
        for name, model in (("ours", ours), ("torch", theirs)):
            comm.barrier()
            start = time.perf_counter()
            model(x.clone().requires_grad_()).square().mean().backward()
            comm.barrier()
            taken[name].append(time.perf_counter() - start)
    return {name: median(each[3:]) for name, each in taken.items()}


def main():
    print(f"{'width':>7}{'tokens':>8}{'ours':>9}{'torch':>9}{'ratio':>7}")
    for width, tokens in ((128, 256), (512, 512), (1024, 1024)):
        taken = run(both, RANKS, args=(width, tokens), timeout_s=300).results[0]
        ours, torchs = taken["ours"] * 1e3, taken["torch"] * 1e3
        row = f"{width:>7}{tokens:>8}{ours:>9.2f}{torchs:>9.2f}"
        print(f"{row}{ours / torchs:>7.2f}")


if __name__ == "__main__":
    main()
