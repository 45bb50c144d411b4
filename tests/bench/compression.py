"""Gradient compression beside PyTorch's: top-k, a PowerSGD step, and bytes to learn.

    python tests/bench/compression.py [times]

"ours / torch" is the median over the turns of the ratio of times: below 1 is faster.
Bytes are what rank 0 of 4 sends until 90 % of unseen digits are right, for the best
learning rate of each, with the worst of five seeds.
"""

import math
import statistics
import sys
import time

import torch
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as torchs
from torch.nn.parallel import DistributedDataParallel

from distlab import World, cost
from distlab.train.compression import Compressed, PowerSGD, SparseTernary, TopK
from distlab.train.data import digits
from distlab.train.data_parallel import OverlappedDataParallel
from distlab.train.models import GPT, DigitReader


def seconds(call):
    """Return how long a call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def top_k(times):
    """Return the ratio of TopK(0.001) to torch.topk, for 10 million elements."""
    flat, compressor = torch.randn(10_000_000), TopK(0.001)
    ratios = []
    for _ in range(times):
        theirs = seconds(lambda: flat[torch.topk(flat.abs(), 10_000).indices])
        ratios.append(seconds(lambda: compressor.compress(flat)) / theirs)
    return statistics.median(ratios)


def power_sgd(comm, rank, times):
    """Return this rank's seconds of steps under PyTorch's hook and under ours."""
    steps = []
    for ours in (False, True):
        torch.manual_seed(0)
        gpt = GPT(width=128, layers=4, heads=4, length=64)
        # one bucket: on gloo PyTorch's hook may send several in different orders
        model = DistributedDataParallel(_Loss(gpt), bucket_cap_mb=100)
        if ours:
            model.register_comm_hook(comm, Compressed(PowerSGD(rank), warmup=2))
        else:
            state = torchs.PowerSGDState(None, rank, 2)
            model.register_comm_hook(state, torchs.powerSGD_hook)
        steps.append(model)
    text = torch.randint(256, (4, 65))
    took = []
    for _ in range(times + 3):
        took.append([seconds(lambda m=m: m(text).backward()) for m in steps])
    return took[3:]


class _Loss(torch.nn.Module):
    def __init__(self, gpt):
        super().__init__()
        self.gpt = gpt

    def forward(self, text):
        return self.gpt.loss(text)


def steps_until_read(comm, make, rate, momentum, seed):
    """Return the steps until 90 % of unseen digits are right, or inf after 400."""
    torch.manual_seed(seed)
    model = DigitReader(64)
    hook = Compressed(make()) if make else None
    data_parallel = OverlappedDataParallel(comm, model, hook=hook)
    pixels, labels = digits()
    draw = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(pixels), generator=draw)
    seen, unseen = order[:1400][comm.rank :: comm.world_size], order[1400:]
    draw.manual_seed(100 * seed + comm.rank)
    optimizer = torch.optim.SGD(model.parameters(), rate, momentum)
    for step in range(1, 401):
        batch = seen[torch.randint(len(seen), (16,), generator=draw)]
        optimizer.zero_grad()
        model.loss(pixels[batch], labels[batch]).backward()
        data_parallel.average_gradients()
        optimizer.step()
        with torch.no_grad():
            right = (model(pixels[unseen]).argmax(1) == labels[unseen]).float().mean()
        if right >= 0.9:
            return step
    return math.inf


def bytes_until_read(world, make, momentum):
    """Return the bytes of the best learning rate of each of five seeds."""
    shapes = [p.shape for p in DigitReader(64).parameters()]
    if make:
        a_step = make().cost(4, shapes).sent_bytes[0]
    else:
        elements = sum(shape.numel() for shape in shapes)
        a_step = cost.ring_all_reduce(4, 4 * elements, itemsize=4).sent_bytes[0]
    best = []
    for seed in range(5):
        rates = (0.2, 0.4, 0.7, 1.0, 1.4)
        calls = [(make, rate, momentum, seed) for rate in rates]
        steps = [world.run(steps_until_read, *call).results[0] for call in calls]
        best.append(a_step * min(steps))
    return best


def main(times=11):
    """Print the tables."""
    print(f"top-k of 10 million, ours / torch   {top_k(times):5.2f}")
    with World(2) as world:
        for rank in (1, 4):
            took = world.run(power_sgd, rank, times).results
            slowest = [
                [max(a) for a in zip(*turn, strict=True)]
                for turn in zip(*took, strict=True)
            ]
            ratio = statistics.median(ours / theirs for theirs, ours in slowest)
            print(f"PowerSGD, rank {rank}, ours / torch      {ratio:5.2f}")
    with World(4) as world:
        dense = min(
            (bytes_until_read(world, None, momentum) for momentum in (0.0, 0.9)),
            key=sum,
        )
        print(f"dense            bytes until 90 %, five seeds   {dense}")
        for density in (0.001, 0.002, 0.003, 0.005):
            found = bytes_until_read(world, lambda d=density: SparseTernary(d), 0.0)
            ratios = [f"1/{a / b:.0f}" for a, b in zip(dense, found, strict=True)]
            print(f"ternary {density:5}    of dense {' '.join(ratios)}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
