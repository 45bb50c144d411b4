"""DDP and FSDP2 with their collectives seen, and the start beside torchrun.

    python tests/bench/seen.py

In one world, a model trains over a group whose collectives are noted and over one
that torch made as it comes, step by step in turn.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import distributed_c10d
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from distlab import run

STEPS, WIDTH, LAYERS = 30, 1120, 8  # 10 million parameters
FIRST = """import os, time, torch, torch.distributed as dist
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(10, 10))
model(torch.ones(2, 10)).sum().backward()
if dist.get_rank() == 0:
    print("first", time.time(), flush=True)
dist.destroy_process_group()
"""


def unseen_group(ranks):
    """Return a group that torch makes as it comes."""
    noted = distributed_c10d._new_process_group_helper
    distributed_c10d._new_process_group_helper = noted.__wrapped__
    try:
        return dist.new_group(ranks)
    finally:
        distributed_c10d._new_process_group_helper = noted


def model():
    torch.manual_seed(0)
    return nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)))


def with_ddp(group):
    return DistributedDataParallel(model(), process_group=group)


def with_fsdp(group):
    mesh, whole = DeviceMesh.from_group(group, "cpu"), model()
    for layer in whole:
        fully_shard(layer, mesh=mesh)
    return fully_shard(whole, mesh=mesh)


def in_turn(comm, make):
    ranks = range(comm.world_size)
    made = {"seen": make(dist.new_group(ranks)), "unseen": make(unseen_group(ranks))}
    x, taken = torch.rand(32, WIDTH), {"seen": [], "unseen": []}
    for step in range(STEPS):
        for name in sorted(made, reverse=step % 2):
            comm.barrier()
            start = time.perf_counter()
            made[name](x).square().mean().backward()
            comm.barrier()
            taken[name].append(time.perf_counter() - start)
    return {name: seconds[3:] for name, seconds in taken.items()}


def first_all_reduce(command, script):
    """Return the seconds from the command to rank 0's first backward pass."""
    start = time.time()
    shown = subprocess.run([*command, script], capture_output=True, text=True)
    line = next(line for line in shown.stdout.splitlines() if "first" in line)
    return float(line.split()[-1]) - start


def main():
    print("step, 2 ranks                seen      unseen    ratio")
    for name, make in (("DDP", with_ddp), ("FSDP2", with_fsdp)):
        taken = run(in_turn, 2, args=[make], timeout_s=300).results[0]
        seen, unseen = median(taken["seen"]), median(taken["unseen"])
        ratio = median(a / b for a, b in zip(*taken.values(), strict=True))
        print(f"{name:<25}{seen * 1e3:8.1f} ms {unseen * 1e3:8.1f} ms {ratio:8.3f}")
    bin_folder = Path(sys.executable).parent
    commands = {
        "distlab launch": [bin_folder / "distlab", "launch", "-n", "4"],
        "torchrun": [bin_folder / "torchrun", "--standalone", "--nproc-per-node", "4"],
    }
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "first.py"
        script.write_text(FIRST)
        for name, command in commands.items():
            taken = [first_all_reduce(command, script) for _ in range(4)]
            print(
                f"{name}, 4 ranks to DDP's first all-reduce: {median(taken[1:]):.2f} s"
            )


if __name__ == "__main__":
    main()
