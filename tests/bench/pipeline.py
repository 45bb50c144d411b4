"""1F1B beside torch.distributed.pipelining's, the virtual clock, and the search.

    python tests/bench/pipeline.py

Both engines train the same GPT in four stages, step by step in turn.
"""

import time
from statistics import median

import torch
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

from distlab import run
from distlab.links import LINKS
from distlab.simulated import Payload, Uniform
from distlab.train.models import GPT
from distlab.train.pipeline import (
    PipelinedModel,
    Times,
    one_f_one_b,
    play,
    timed,
    zero_bubble_search,
)

STEPS, STAGES, MICROBATCHES = 12, 4, 8


def stage_of(comm, width):
    torch.manual_seed(comm.rank)
    gpt = GPT(width=width, layers=2, heads=4)
    return nn.Sequential(*gpt.blocks)


def square(output, target):
    return (output - target).square().mean()


def both(comm, width):
    ours = PipelinedModel(
        comm, [stage_of(comm, width)], one_f_one_b(STAGES, MICROBATCHES), square
    )
    stage = PipelineStage(stage_of(comm, width), comm.rank, STAGES, comm.device)
    theirs = Schedule1F1B(stage, MICROBATCHES, loss_fn=square)
    x = torch.rand(16, 64, width)
    first, last = comm.rank == 0, comm.rank == STAGES - 1

    def by_torch():
        given = (x,) if first else ()
        theirs.step(*given, **({"target": x} if last else {}))

    taken = {"ours": [], "torch": []}
    for _ in range(STEPS):
        for name, step in (("ours", lambda: ours.step(x, x)), ("torch", by_torch)):
            comm.barrier()
            start = time.perf_counter()
            step()
            comm.barrier()
            taken[name].append(time.perf_counter() - start)
    return {name: median(each[2:]) for name, each in taken.items()}


class Messages:
    def do(self, work, arrived):
        return Payload(2**20)

    def room(self, part, kind):
        return Payload(2**20)


def on_the_clock(comm, schedule):
    play(comm, schedule, Messages(), seconds=lambda stage, work: 1e-3)


def main():
    print(f"1F1B, {STAGES} stages, {MICROBATCHES} microbatches, a step in ms")
    print(f"{'width':>7}{'ours':>9}{'torch':>9}{'ratio':>7}")
    for width in (32, 128, 256):
        found = run(both, STAGES, args=(width,), quiet=True).results[0]
        ours, theirs = (1e3 * found[name] for name in ("ours", "torch"))
        print(f"{width:7}{ours:9.1f}{theirs:9.1f}{ours / theirs:7.2f}")

    schedule = one_f_one_b(64, 512)
    start = time.process_time()
    run(on_the_clock, 64, args=(schedule,), fabric=Uniform(LINKS["InfiniBand NDR"]))
    taken = time.process_time() - start
    print(
        f"virtual clock, 64 stages, 512 microbatches: {taken:.2f} s of processor time"
    )

    profiled = Times(18.522, 18.086, 9.337, communication=0.601)
    for name, times in (("equal F, B, W", Times()), ("profiled", profiled)):
        start = time.process_time()
        how = {"most_held": 16, "kept_for_weights": 0.37}
        found = zero_bubble_search(8, 24, times, **how)
        taken, bubble = time.process_time() - start, timed(found, times).bubble
        print(f"search, 8 stages, 24 microbatches, {name}: {bubble:.1%}, {taken:.2f} s")


if __name__ == "__main__":
    main()
