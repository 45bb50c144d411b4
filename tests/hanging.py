"""Jobs of three gloo processes that hang, each in its own way, and leave their dumps.

    python tests/hanging.py FOLDER          # FOLDER/JOB/rank_0, rank_1 and rank_2

A rank's dump is taken by a thread of it, once its recorder holds as many calls as the
job says. Ranks that would crash each other come one after the other's dump.
"""

import json
import os
import signal
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch._inductor.codecache  # once, before the fork: a dump with stacks imports it
import torch.distributed as dist
from torch._C._distributed_c10d import _dump_fr_trace, _dump_fr_trace_json

RANKS = range(3)
SUBGROUPS = {"1": (0, 1), "2": (1, 2), "3": (0, 2)}
# How many calls each rank's recorder holds in the end, and who waits then.
JOBS = {
    "skipped": ((6, 5, 6), (0, 2)),
    "order": ((1, 1, 1), (0, 1, 2)),
    "shapes": ((1, 1, 1), None),
    "types": ((1, 1, 1), None),
    "crossed": ((3, 3, 3), (0, 1, 2)),
    "barrier": ((1, 1, 1), (0, 1, 2)),
    "returned": ((4, 3, 4), (0, 2)),
    "busy": ((1, 0, 1), (0, 2)),
    "healthy": ((4, 4, 4), ()),
}


def work(job, rank, came):
    """Do what a rank of the job does, up to where it hangs."""
    ones = torch.ones(4)
    if job == "skipped":
        for step in range(3):
            dist.all_reduce(ones)
            if rank != 1 or step != 1:
                dist.all_reduce(ones)
    elif job == "order":
        if rank == 0:
            dist.broadcast(ones, 0)
        dist.all_reduce(torch.ones(9))
    elif job == "shapes":
        came(rank - 1)
        dist.all_reduce(torch.ones(4 + 100 * rank), async_op=True)
    elif job == "types":
        came(rank - 1)
        kind = (torch.uint8, torch.float32, torch.float64)[rank]
        dist.all_reduce(ones.to(kind), async_op=True)
    elif job == "crossed":
        groups = [dist.new_group(ranks) for ranks in SUBGROUPS.values()]
        mine = ((0, 2), (1, 0), (2, 1))[rank]
        for number in (*sorted(mine), *mine):
            dist.all_reduce(ones, group=groups[number])
    elif job == "barrier":
        if rank == 0:
            dist.barrier()
        dist.all_reduce(ones)
    elif job == "returned":
        for _ in range(3 if rank == 1 else 4):
            dist.all_gather_into_tensor(torch.ones(12), ones)
    elif job == "busy" and rank != 1:
        dist.all_reduce(ones)
    elif job == "healthy":
        for _ in range(4):
            dist.all_reduce(ones)


def be_rank(job, rank, folder):
    """Run one rank of a job, dump, and leave when all have dumped."""

    def came(*ranks):
        while not all(r < 0 or (folder / f"rank_{r}").exists() for r in ranks):
            time.sleep(0.01)

    counts, waiting = JOBS[job]

    def dump():
        while True:
            calls = json.loads(_dump_fr_trace_json()).get("entries", [])
            going = sum(not call["retired"] for call in calls)
            settled = waiting is None or going == (rank in waiting)
            if len(calls) == counts[rank] and settled:
                break
            time.sleep(0.005)
        kept = folder / f"rank_{rank}"
        kept.with_suffix(".part").write_bytes(_dump_fr_trace())
        kept.with_suffix(".part").rename(kept)
        came(*RANKS)
        os._exit(0)

    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder}/store",
        rank=rank,
        world_size=len(RANKS),
        timeout=timedelta(seconds=60),
    )
    threading.Thread(target=dump).start()
    work(job, rank, came)


def main(folder):
    """Run all jobs at once."""
    ranks = []
    for job in JOBS:
        (folder / job).mkdir(parents=True)
        for rank in RANKS:
            if not (pid := os.fork()):
                be_rank(job, rank, folder / job)
                signal.pause()  # the thread that dumps ends the process
            ranks.append(pid)
    for pid in ranks:
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
